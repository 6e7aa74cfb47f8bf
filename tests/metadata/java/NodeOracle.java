import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Properties;
import kafka.zk.*;
import org.apache.zookeeper.data.Stat;

/** Reads `kind, tab, node content` line by line; prints what Apache Kafka writes after reading it. */
public class NodeOracle {
    public static void main(String[] arguments) throws Exception {
        for (String path : scala.jdk.javaapi.CollectionConverters.asJava(ZkData.PersistentZkPaths())) {
            System.out.println("base\t" + path);
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] columns = line.split("\t", 2);
            System.out.println(columns[0] + "\t" + new String(again(columns[0], columns[1].getBytes(UTF_8)), UTF_8));
        }
    }

    private static byte[] again(String kind, byte[] bytes) {
        switch (kind) {
            case "name":
                return org.apache.kafka.common.utils.Sanitizer.sanitize(new String(bytes, UTF_8)).getBytes(UTF_8);
            case "broker":
                return BrokerIdZNode$.MODULE$.encode(BrokerIdZNode$.MODULE$.decode(1, bytes));
            case "topic":
                TopicZNode.TopicIdReplicaAssignment topic = TopicZNode$.MODULE$.decode("t", bytes);
                return TopicZNode$.MODULE$.encode(topic.topicId(), topic.assignment());
            case "state":
                return TopicPartitionStateZNode$.MODULE$.encode(
                    TopicPartitionStateZNode$.MODULE$.decode(bytes, new Stat()).get());
            case "controller":
                int id = (Integer) ControllerZNode$.MODULE$.decode(bytes).get();
                ControllerZNode$.MODULE$.decodeController(bytes, 0);
                return ControllerZNode$.MODULE$.encode(id, 1700000000000L, ControllerZNode$.MODULE$.encode$default$3());
            case "epoch":
                return ControllerEpochZNode$.MODULE$.encode(ControllerEpochZNode$.MODULE$.decode(bytes));
            case "cluster":
                return ClusterIdZNode$.MODULE$.toJson(ClusterIdZNode$.MODULE$.fromJson(bytes));
            case "config":
                Properties config = ConfigEntityZNode$.MODULE$.decode(bytes);
                return ConfigEntityZNode$.MODULE$.encode(config);
            case "config change":
                return ConfigEntityChangeNotificationSequenceZNode$.MODULE$.encode("topics/t");
            case "isr":
                return IsrChangeNotificationSequenceZNode$.MODULE$.encode(
                    IsrChangeNotificationSequenceZNode$.MODULE$.decode(bytes));
            case "log dir":
                return LogDirEventNotificationSequenceZNode$.MODULE$.encode(
                    (Integer) LogDirEventNotificationSequenceZNode$.MODULE$.decode(bytes).get());
            case "producer ids":
                return ProducerIdBlockZNode$.MODULE$.generateProducerIdBlockJson(
                    ProducerIdBlockZNode$.MODULE$.parseProducerIdBlockData(bytes));
            case "features":
                return FeatureZNode$.MODULE$.encode(FeatureZNode$.MODULE$.decode(bytes));
            case "acls":
                return ResourceZNode$.MODULE$.encode(ResourceZNode$.MODULE$.decode(bytes, new Stat()).acls());
            case "acl change":
                return LiteralAclChangeStore$.MODULE$.createChangeNode(
                    LiteralAclChangeStore$.MODULE$.decode(bytes)).bytes();
            case "prefixed acl change":
                return ExtendedAclChangeStore$.MODULE$.createChangeNode(
                    ExtendedAclChangeStore$.MODULE$.decode(bytes)).bytes();
            default:
                throw new IllegalArgumentException(kind);
        }
    }
}
