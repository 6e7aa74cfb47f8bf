import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.common.TopicPartition;

/**
 * Shares out partitions as Kafka's own client does. A line of the file is a case: the strategy, the topics with their
 * numbers of partitions, and the members, each with its instance id (or -), generation, topics and owned partitions:
 * {@code range t:3,u:2 m1/-/1/t+u/t.0+t.1 m2/x/1/t/}. A line of the output: {@code m1=t.0+t.1 m2=t.2}.
 */
public class AssignorPeer {
    public static void main(String[] arguments) throws Exception {
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            String[] words = line.split(" ");
            Map<String, Integer> counts = new HashMap<>();
            for (String entry : words[1].split(",")) {
                counts.put(entry.split(":")[0], Integer.parseInt(entry.split(":")[1]));
            }
            Map<String, Subscription> members = new HashMap<>();
            for (int at = 2; at < words.length; at++) {
                String[] parts = words[at].split("/", -1);
                List<String> topics = parts[3].isEmpty() ? List.of() : List.of(parts[3].split("\\+"));
                List<TopicPartition> owned = new ArrayList<>();
                for (String place : parts[4].isEmpty() ? new String[0] : parts[4].split("\\+")) {
                    owned.add(new TopicPartition(place.split("\\.")[0], Integer.parseInt(place.split("\\.")[1])));
                }
                Subscription told =
                    new Subscription(topics, null, owned, Integer.parseInt(parts[2]), Optional.empty());
                if (!parts[1].equals("-")) {
                    told.setGroupInstanceId(Optional.of(parts[1]));
                }
                members.put(parts[0], told);
            }
            System.out.println(show(assignor(words[0]).assign(counts, members)));
        }
    }

    private static AbstractPartitionAssignor assignor(String name) {
        return switch (name) {
            case "range" -> new RangeAssignor();
            case "roundrobin" -> new RoundRobinAssignor();
            default -> new CooperativeStickyAssignor();
        };
    }

    private static String show(Map<String, List<TopicPartition>> assignment) {
        StringBuilder out = new StringBuilder();
        for (Map.Entry<String, List<TopicPartition>> entry : new TreeMap<>(assignment).entrySet()) {
            List<String> places = new ArrayList<>();
            for (TopicPartition place : entry.getValue()) {
                places.add(place.topic() + "." + place.partition());
            }
            out.append(entry.getKey()).append('=').append(String.join("+", places)).append(' ');
        }
        return out.toString();
    }
}
