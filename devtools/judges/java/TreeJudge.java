import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import kafka.controller.LeaderIsrAndControllerEpoch;
import kafka.controller.ReplicaAssignment;
import kafka.zk.KafkaZkClient;
import kafka.zk.KafkaZkClient$;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.zookeeper.client.ZKClientConfig;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Reads the tree of a cluster with Apache Kafka's own client of ZooKeeper and its decoders. Prints what it found; a line
 * with "WRONG" for everything that does not hold: a leader outside of the ISR, an ISR outside of the replicas, a
 * topic without an id, a state of a controller that was not elected yet.
 */
public final class TreeJudge {
    static int wrong = 0;

    static void check(boolean holds, String what) {
        if (!holds) {
            wrong++;
            System.out.println("WRONG " + what);
        }
    }

    public static void main(String[] arguments) {
        KafkaZkClient client = KafkaZkClient$.MODULE$.apply(
            arguments[0], false, 6000, 30000, 10, Time.SYSTEM, "judge", new ZKClientConfig(),
            KafkaZkClient$.MODULE$.apply$default$9(), KafkaZkClient$.MODULE$.apply$default$10(), false, false);
        Map<kafka.cluster.Broker, Object> brokers =
            CollectionConverters.asJava(client.getAllBrokerAndEpochsInCluster());
        Set<Integer> ids = new TreeSet<>();
        for (Map.Entry<kafka.cluster.Broker, Object> each : brokers.entrySet()) {
            ids.add(each.getKey().id());
            check((Long) each.getValue() > 0, "broker " + each.getKey().id() + " has no epoch");
            check(each.getKey().endPoints().nonEmpty(), "broker " + each.getKey().id() + " has no endpoint");
        }
        int controller = (Integer) client.getControllerId().get();
        int epoch = (Integer) client.getControllerEpoch().get()._1();
        check(ids.contains(controller), "the controller " + controller + " is not registered");
        check(client.getClusterId().isDefined(), "no cluster id");
        scala.collection.immutable.Set<String> topics = client.getAllTopicsInCluster(false);
        check(client.getTopicIdsForTopics(topics).size() == topics.size(), "a topic without an id");
        for (String topic : CollectionConverters.asJava(topics)) {
            client.getEntityConfigs("topics", topic);
        }
        Map<TopicPartition, ReplicaAssignment> assigned =
            CollectionConverters.asJava(client.getFullReplicaAssignmentForTopics(topics));
        Map<TopicPartition, LeaderIsrAndControllerEpoch> states = CollectionConverters.asJava(
            client.getTopicPartitionStates(CollectionConverters.asScala(List.copyOf(assigned.keySet())).toSeq()));
        check(states.size() == assigned.size(), "a partition without a state");
        states.forEach((partition, state) -> {
            Set<Object> isr = Set.copyOf(CollectionConverters.asJava(state.leaderAndIsr().isr()));
            Set<Object> replicas = Set.copyOf(CollectionConverters.asJava(assigned.get(partition).replicas()));
            check(replicas.containsAll(isr), partition + ": the ISR " + isr + " is not within " + replicas);
            check(isr.contains(state.leaderAndIsr().leader()), partition + ": the leader is not in " + isr);
            check(state.controllerEpoch() <= epoch, partition + ": of a controller that was not elected yet");
        });
        System.out.println("brokers " + ids + ", controller " + controller + " in epoch " + epoch + ", "
            + topics.size() + " topics, " + states.size() + " partitions, " + wrong + " wrong");
        client.close();
        System.exit(wrong == 0 ? 0 : 1);
    }
}
