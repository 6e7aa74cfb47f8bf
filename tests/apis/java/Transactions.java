import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** What a Java application does with transactions, step by step; prints what it saw. Topics: in, out, one partition. */
public class Transactions {
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        commitsAndAborts();
        copies();
        fences();
        runsOutOfTime();
    }

    static void commitsAndAborts() {
        try (Producer<String, String> producer = producer("plain", 60_000)) {
            producer.initTransactions();
            for (int round = 0; round < 6; round++) {
                producer.beginTransaction();
                for (int number = 0; number < 10; number++) {
                    producer.send(new ProducerRecord<>("in", round + "." + number));
                }
                if (round % 2 == 0) producer.commitTransaction();
                else producer.abortTransaction();
            }
            producer.beginTransaction(); // nothing in it
            producer.commitTransaction();
        }
        List<String> seen = all("in", 30);
        System.out.println("committed " + seen.size() + " " + seen.stream().map(v -> v.charAt(0)).distinct().toList());
    }

    /** Consume, transform, produce: the third round is aborted and done again. */
    static void copies() {
        Properties settings = consumerSettings("copier");
        settings.put("max.poll.records", "5");
        int aborted = 0;
        try (Consumer<String, String> consumer = new KafkaConsumer<>(settings);
                Producer<String, String> producer = producer("copier", 60_000)) {
            consumer.subscribe(List.of("in"));
            producer.initTransactions();
            int copied = 0;
            int rounds = 0;
            while (copied < 30) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofSeconds(1));
                if (records.isEmpty()) continue;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>("out", "copy of " + record.value()));
                    offsets.put(
                            new TopicPartition(record.topic(), record.partition()),
                            new OffsetAndMetadata(record.offset() + 1, "so far"));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (rounds++ == 2) {
                    producer.abortTransaction();
                    aborted++;
                    consumer.committed(consumer.assignment()).forEach((partition, offset) -> consumer.seek(partition, offset));
                } else {
                    producer.commitTransaction();
                    copied += records.count();
                }
            }
            TopicPartition in = new TopicPartition("in", 0);
            OffsetAndMetadata stored = consumer.committed(Set.of(in)).get(in);
            System.out.println("copied " + copied + " aborted " + aborted + " metadata " + stored.metadata());
        }
        List<String> seen = all("out", 30);
        System.out.println("copies " + seen.size() + " " + new HashSet<>(seen).size());
    }

    static void fences() {
        Producer<String, String> zombie = producer("taken over", 60_000);
        zombie.initTransactions();
        zombie.beginTransaction();
        send(zombie, "of the zombie");
        try (Producer<String, String> heir = producer("taken over", 60_000)) {
            heir.initTransactions();
            heir.beginTransaction();
            send(heir, "of the heir");
            System.out.println("zombie " + failure(zombie::commitTransaction));
            heir.commitTransaction();
        }
        zombie.close(Duration.ZERO);
        System.out.println("after fencing " + all("out", 31).stream().filter(v -> v.startsWith("of the")).toList());
    }

    static void runsOutOfTime() throws Exception {
        try (Producer<String, String> slow = producer("slow", 500)) {
            slow.initTransactions();
            slow.beginTransaction();
            send(slow, "too late");
            // A reader at read_committed is held up until the broker gives the transaction up.
            TopicPartition out = new TopicPartition("out", 0);
            try (Consumer<String, String> consumer = new KafkaConsumer<>(consumerSettings("watcher"))) {
                long end = consumer.endOffsets(List.of(out)).get(out);
                while (consumer.endOffsets(List.of(out)).get(out) == end) Thread.sleep(20);
            }
            System.out.println("slow " + failure(slow::commitTransaction));
        }
        System.out.println("in the end " + all("out", 31).size());
    }

    static void send(Producer<String, String> producer, String value) {
        try {
            producer.send(new ProducerRecord<>("out", value)).get();
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    static String failure(Runnable action) {
        try {
            action.run();
            return "no failure";
        } catch (Exception error) {
            return error.getClass().getSimpleName();
        }
    }

    /** All that can be read at read_committed; waits for `least` records and then for a moment of silence. */
    static List<String> all(String topic, int least) {
        List<String> seen = new ArrayList<>();
        try (Consumer<String, String> consumer = new KafkaConsumer<>(consumerSettings("reader"))) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (seen.size() < least || consumer.position(partition) < end) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> seen.add(record.value()));
            }
        }
        return seen;
    }

    static Producer<String, String> producer(String transactionalId, int timeoutMs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", transactionalId);
        settings.put("transaction.timeout.ms", String.valueOf(timeoutMs));
        settings.put("retry.backoff.ms", "20");
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    static Properties consumerSettings(String group) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("isolation.level", "read_committed");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        return settings;
    }
}
