import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/** Counts words with a state store, exactly once. A second life in an empty folder restores the store from its changelog. */
public class WordCount {
    static final List<String> LINES = List.of("all streams lead to kafka", "hello kafka streams", "join kafka summit");
    static final Map<String, Long> TWICE = Map.of("all", 2L, "streams", 4L, "lead", 2L, "to", 2L, "kafka", 6L,
            "hello", 2L, "join", 2L, "summit", 2L);

    public static void main(String[] words) throws Exception {
        String bootstrap = words[0];
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic("lines", 2, (short) 1), new NewTopic("counts", 2, (short) 1))).all().get();
        }
        live(bootstrap, Path.of(words[1], "first"), words[2], 1);
        live(bootstrap, Path.of(words[1], "second"), words[2], 2);
        Map<String, Long> read = read(bootstrap);
        if (!read.equals(TWICE)) throw new IllegalStateException("the topic has " + read);
        System.out.println("counted " + read);
    }

    static void live(String bootstrap, Path folder, String protocol, int times) throws Exception {
        Properties settings = new Properties();
        settings.putAll(Map.of("application.id", "word-count", "bootstrap.servers", bootstrap, "state.dir", folder.toString(),
                "processing.guarantee", "exactly_once_v2", "commit.interval.ms", "100",
                "default.key.serde", Serdes.String().getClass().getName(),
                "default.value.serde", Serdes.String().getClass().getName(), "group.protocol", protocol));
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> lines = builder.stream("lines");
        lines.flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
                .count(Materialized.as("store"))
                .toStream().to("counts", Produced.with(Serdes.String(), Serdes.Long()));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
            streams.start();
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap),
                    new StringSerializer(), new StringSerializer())) {
                for (String line : LINES) producer.send(new ProducerRecord<>("lines", line, line));
            }
            long end = System.currentTimeMillis() + 90_000;
            Map<String, Long> found = Map.of();
            while (found.getOrDefault("kafka", 0L) != 3L * times || found.size() != TWICE.size()
                    || found.values().stream().mapToLong(each -> each).sum() != 11L * times) {
                if (System.currentTimeMillis() > end) throw new IllegalStateException("the store has " + found);
                Thread.sleep(100);
                if (streams.state() == KafkaStreams.State.RUNNING) found = store(streams);
            }
        }
    }

    static Map<String, Long> store(KafkaStreams streams) {
        Map<String, Long> found = new HashMap<>();
        var kind = QueryableStoreTypes.<String, Long>keyValueStore();
        try (var all = streams.store(StoreQueryParameters.fromNameAndType("store", kind)).all()) {
            all.forEachRemaining(pair -> found.put(pair.key, pair.value));
        } catch (org.apache.kafka.streams.errors.InvalidStateStoreException moving) {
            return Map.of();
        }
        return found;
    }

    static Map<String, Long> read(String bootstrap) {
        Map<String, Long> found = new HashMap<>();
        try (KafkaConsumer<String, Long> consumer = new KafkaConsumer<>(Map.of("bootstrap.servers", bootstrap, "group.id", "reader",
                "auto.offset.reset", "earliest", "isolation.level", "read_committed"), new StringDeserializer(),
                new LongDeserializer())) {
            consumer.subscribe(List.of("counts"));
            long end = System.currentTimeMillis() + 60_000;
            while (!found.equals(TWICE) && System.currentTimeMillis() < end)
                consumer.poll(Duration.ofMillis(500)).forEach(record -> found.put(record.key(), record.value()));
        }
        return found;
    }
}
