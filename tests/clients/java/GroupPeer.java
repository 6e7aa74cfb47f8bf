import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A member of a group until its standard input ends: {@code GroupPeer bootstrap group topic}. It prints {@code assigned
 * N} whenever that changes and {@code value V} for each record, and commits what it has printed.
 */
public class GroupPeer {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("group.id", arguments[1]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", "read_committed");
        settings.put("heartbeat.interval.ms", "100");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(arguments[2]), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> places) {
                    say("assigned " + places.size());
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> places) {
                    say("assigned 0");
                }
            });
            while (System.in.available() == 0) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(50));
                for (ConsumerRecord<String, String> record : records) {
                    say("value " + record.value());
                }
                try {
                    consumer.commitSync();
                } catch (CommitFailedException | RebalanceInProgressException rebalancing) {
                    say("again");
                }
            }
        }
        say("ended");
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
