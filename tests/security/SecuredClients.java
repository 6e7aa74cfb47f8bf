import java.io.FileReader;
import java.io.Reader;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Sends a record and reads it back with the settings of each properties file that is named. Prints the name of the file
 * and "ok", or the exception that came. A case "again-…" sends for several lifetimes of its session, one after the other.
 */
public final class SecuredClients {
    static final long SESSIONS_NS = 2_500_000_000L;

    public static void main(String[] files) throws Exception {
        for (String file : files) {
            String name = Path.of(file).getFileName().toString().replace(".properties", "");
            System.out.println("case\t" + name + "\t" + tried(file, name));
        }
        System.exit(0);
    }

    static String tried(String file, String name) throws Exception {
        Properties settings = new Properties();
        try (Reader reader = new FileReader(file)) {
            settings.load(reader);
        }
        settings.putIfAbsent("max.block.ms", "60000");
        settings.put("reconnect.backoff.max.ms", "100");
        try {
            return roundTrip(settings, name);
        } catch (Throwable failure) {
            Throwable cause = failure;
            while (cause.getCause() != null && !cause.getClass().getSimpleName().endsWith("AuthenticationException")) {
                cause = cause.getCause();
            }
            return cause.getClass().getSimpleName() + ": " + String.valueOf(cause.getMessage()).replace('\n', ' ');
        }
    }

    static String roundTrip(Properties settings, String value) throws Exception {
        RecordMetadata written;
        try (KafkaProducer<String, String> producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            written = producer.send(new ProducerRecord<>("t", 0, null, value)).get(60, TimeUnit.SECONDS);
            long end = System.nanoTime() + (value.startsWith("again-") ? SESSIONS_NS : 0);
            while (System.nanoTime() < end) {
                long before = written.offset();
                written = producer.send(new ProducerRecord<>("t", 0, null, value)).get(60, TimeUnit.SECONDS);
                if (written.offset() != before + 1) {
                    return "lost or repeated";
                }
            }
        }
        TopicPartition place = new TopicPartition("t", 0);
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(place));
            consumer.seek(place, written.offset());
            for (int tries = 0; tries < 600; tries++) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(100));
                if (!records.isEmpty()) {
                    return records.iterator().next().value().equals(value) ? "ok" : "another record";
                }
            }
        }
        return "no record";
    }
}
