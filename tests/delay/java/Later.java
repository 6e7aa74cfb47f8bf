import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;

/** Reads over the holes of delayed records, and sends a record back for later in one transaction with its offset. */
public class Later {
    static final long PATIENCE_MS = 60_000;
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        holes("java-holes");
        again("java-jobs");
    }

    static KafkaConsumer<String, String> consumer() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", "workers");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", "read_committed");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer");
        return new KafkaConsumer<>(settings);
    }

    static void holes(String topic) {
        TopicPartition partition = new TopicPartition(topic, 0);
        StringBuilder seen = new StringBuilder();
        try (KafkaConsumer<String, String> consumer = consumer()) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            long limit = System.currentTimeMillis() + PATIENCE_MS;
            while (consumer.position(partition) < end && System.currentTimeMillis() < limit) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    seen.append(record.value()).append('@').append(record.offset()).append(' ');
                }
            }
            System.out.println(seen + "position " + consumer.position(partition) + " lag "
                + consumer.currentLag(partition).getAsLong());
        }
    }

    static ConsumerRecord<String, String> next(KafkaConsumer<String, String> consumer) {
        long limit = System.currentTimeMillis() + PATIENCE_MS;
        while (System.currentTimeMillis() < limit) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                return record;
            }
        }
        throw new IllegalStateException("no record came");
    }

    static void again(String topic) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", "worker-1");
        settings.put("key.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        settings.put("value.serializer", "org.apache.kafka.common.serialization.StringSerializer");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings);
                KafkaConsumer<String, String> consumer = consumer()) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, "order", "pay"));
            producer.commitTransaction();
            consumer.subscribe(List.of(topic));
            ConsumerRecord<String, String> order = next(consumer);
            producer.beginTransaction();
            ProducerRecord<String, String> later = new ProducerRecord<>(topic, order.key(), order.value());
            later.headers().add("x-deliver-after-ms", "300".getBytes(StandardCharsets.UTF_8));
            later.headers().add("attempts", "1".getBytes(StandardCharsets.UTF_8));
            producer.send(later);
            producer.sendOffsetsToTransaction(
                Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(order.offset() + 1)),
                consumer.groupMetadata());
            producer.commitTransaction();
            long sent = System.currentTimeMillis();
            ConsumerRecord<String, String> retry = next(consumer);
            Header due = retry.headers().lastHeader("x-scheduled-for");
            long early = Long.parseLong(new String(due.value(), StandardCharsets.UTF_8)) - System.currentTimeMillis();
            String attempts = new String(retry.headers().lastHeader("attempts").value(), StandardCharsets.UTF_8);
            System.out.println(retry.value() + " again, attempts " + attempts + ", early " + (early > 0));
            System.out.println("committed " + consumer.committed(Set.of(new TopicPartition(topic, 0)))
                .get(new TopicPartition(topic, 0)).offset());
        }
    }
}
