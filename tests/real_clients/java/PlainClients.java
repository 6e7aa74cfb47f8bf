import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

/**
 * Writes java-CODEC in every codec and with every acks, reads python-CODEC, seeks, asks for offsets, waits for what comes.
 * Prints what it saw.
 */
public class PlainClients {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static final long NOW = 1_700_000_000_000L;
    static String bootstrap;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[0];
        for (String codec : CODECS) write("java-" + codec, codec, "all", true);
        for (String acks : new String[] {"0", "1", "all"}) write("java-acks-" + acks, "lz4", acks, false);
        for (String codec : CODECS) System.out.println(codec + " " + read("python-" + codec, 0, 6));
        seeks();
        waits();
        tooLarge();
    }

    static Producer<byte[], byte[]> producer(String codec, String acks, boolean idempotent) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("compression.type", codec);
        settings.put("acks", acks);
        settings.put("enable.idempotence", idempotent);
        settings.put("linger.ms", 20);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static Consumer<byte[], byte[]> consumer() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("enable.auto.commit", false);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(byte[] data) {
        if (data == null) return "null";
        return data.length > 30 ? data.length + " bytes" : new String(data, StandardCharsets.UTF_8);
    }

    static void write(String topic, String codec, String acks, boolean idempotent) throws Exception {
        try (Producer<byte[], byte[]> producer = producer(codec, acks, idempotent)) {
            List<Future<RecordMetadata>> told = new ArrayList<>();
            String[][] records = {{"key", "value"}, {null, "no key"}, {"no value", null}, {"", ""}, {"large", "x".repeat(100_000)}};
            for (int number = 0; number < records.length; number++) {
                ProducerRecord<byte[], byte[]> record =
                        new ProducerRecord<>(topic, 0, NOW + number, bytes(records[number][0]), bytes(records[number][1]));
                record.headers().add("a", bytes("1")).add("a", bytes("2")).add("none", null);
                told.add(producer.send(record));
            }
            for (int number = 0; number < records.length; number++) {
                long offset = told.get(number).get(20, TimeUnit.SECONDS).offset();
                if (!acks.equals("0") && offset != number) System.out.println(topic + " at " + offset + ", not " + number);
            }
        }
    }

    static String read(String topic, long offset, int count) {
        StringBuilder seen = new StringBuilder();
        try (Consumer<byte[], byte[]> consumer = consumer()) {
            TopicPartition place = new TopicPartition(topic, 0);
            consumer.assign(List.of(place));
            consumer.seek(place, offset);
            int found = 0;
            while (found < count) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofSeconds(20));
                if (records.isEmpty()) return seen + " and no more";
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    if (++found > count) break;
                    seen.append(text(record.key())).append('=').append(text(record.value())).append('@').append(record.timestamp() - NOW);
                    for (Header header : record.headers()) seen.append(' ').append(header.key()).append(':').append(text(header.value()));
                    seen.append("; ");
                }
            }
        }
        return seen.toString().trim();
    }

    static void seeks() {
        TopicPartition place = new TopicPartition("java-zstd", 0);
        try (Consumer<byte[], byte[]> consumer = consumer()) {
            System.out.println("ends " + consumer.beginningOffsets(List.of(place)).get(place) + " " + consumer.endOffsets(List.of(place)).get(place));
            Map<TopicPartition, OffsetAndTimestamp> found = consumer.offsetsForTimes(Map.of(place, NOW + 2));
            System.out.println("at time " + found.get(place).offset() + " " + (found.get(place).timestamp() - NOW) + " " + found.get(place).leaderEpoch().isPresent());
            System.out.println("too late " + consumer.offsetsForTimes(Map.of(place, NOW + 99)).get(place));
            System.out.println("partitions " + consumer.partitionsFor("java-zstd").size());
        }
        System.out.println("middle " + read("java-zstd", 3, 1));
    }

    static void waits() throws Exception {
        ExecutorService others = Executors.newSingleThreadExecutor();
        Future<String> seen = others.submit(() -> read("java-late", 0, 1));
        Thread.sleep(300);
        try (Producer<byte[], byte[]> producer = producer("none", "all", true)) {
            producer.send(new ProducerRecord<>("java-late", 0, NOW, bytes("k"), bytes("late"))).get(20, TimeUnit.SECONDS);
        }
        System.out.println("waited for " + seen.get(20, TimeUnit.SECONDS));
        others.shutdown();
    }

    static void tooLarge() throws Exception {
        try (Producer<byte[], byte[]> producer = producer("none", "all", true)) {
            try {
                producer.send(new ProducerRecord<>("java-tight", 0, NOW, null, new byte[5000])).get(20, TimeUnit.SECONDS);
                System.out.println("too large was taken");
            } catch (ExecutionException error) {
                System.out.println("too large " + error.getCause().getClass().getSimpleName());
            }
            System.out.println("then " + producer.send(new ProducerRecord<>("java-tight", 0, NOW, null, bytes("x"))).get(20, TimeUnit.SECONDS).offset());
        }
    }
}
