import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;

/**
 * Shares out partitions as the leader of a classic group does that runs Kafka's own client. A line of the file is a
 * case: the strategy; the topics, with the racks of each partition's replicas (one letter a rack, - for none); and the
 * members, each with its instance id (or -) and the bytes of its subscription: {@code range t:ab/b,u:-/- m1=-=0003…}.
 * A line of the output has the bytes of each member's assignment, {@code m1=0003…}, or ! and what was raised.
 */
public class AssignorPeer {
    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split(" ");
            Map<String, Subscription> members = new HashMap<>();
            for (int at = 2; at < words.length; at++) {
                String[] parts = words[at].split("=", -1);
                Subscription told =
                    ConsumerProtocol.deserializeSubscription(ByteBuffer.wrap(HexFormat.of().parseHex(parts[2])));
                told.setGroupInstanceId(parts[1].equals("-") ? Optional.empty() : Optional.of(parts[1]));
                members.put(parts[0], told);
            }
            try {
                System.out.println(show(
                    assignor(words[0]).assign(cluster(words[1]), new GroupSubscription(members)).groupAssignment()));
            } catch (RuntimeException raised) {
                System.out.println("! " + raised);
            }
        }
    }

    private static Cluster cluster(String topics) {
        List<PartitionInfo> partitions = new ArrayList<>();
        Map<Character, Node> nodes = new HashMap<>();
        for (String entry : topics.split(",")) {
            String[] parts = entry.split(":");
            String[] racks = parts[1].split("/");
            for (int number = 0; number < racks.length; number++) {
                List<Node> replicas = new ArrayList<>();
                for (char rack : racks[number].toCharArray()) {
                    String name = rack == '-' ? null : String.valueOf(rack);
                    replicas.add(nodes.computeIfAbsent(rack, key -> new Node(key, "host", 9092, name)));
                }
                Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(parts[0], number, all[0], all, all));
            }
        }
        return new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
    }

    private static ConsumerPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            case "sticky" -> new StickyAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    private static String show(Map<String, Assignment> assignment) {
        StringBuilder out = new StringBuilder();
        for (Map.Entry<String, Assignment> entry : new TreeMap<>(assignment).entrySet()) {
            ByteBuffer bytes = ConsumerProtocol.serializeAssignment(entry.getValue());
            byte[] copy = new byte[bytes.remaining()];
            bytes.get(copy);
            out.append(entry.getKey()).append('=').append(HexFormat.of().formatHex(copy)).append(' ');
        }
        return out.toString().strip();
    }
}
