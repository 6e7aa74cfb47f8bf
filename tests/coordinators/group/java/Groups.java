import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Groups of Java consumers on a topic "t" of four partitions with forty records; says what happened, line by line. */
public class Groups {
    static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        List<Callable<String>> all = List.of(
            () -> shareAndHandOver("range", Map.of("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer.RangeAssignor")),
            () -> shareAndHandOver("cooperative", Map.of("partition.assignment.strategy",
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor")),
            () -> shareAndHandOver("consumer", Map.of("group.protocol", "consumer")),
            () -> readAndResume("classic"),
            () -> readAndResume("consumer"),
            () -> restartStatic("classic"),
            () -> restartStatic("consumer"),
            Groups::migrate);
        ExecutorService threads = Executors.newCachedThreadPool();
        List<Future<String>> told = threads.invokeAll(all); // they wait more than they work, so all at once
        threads.shutdown();
        for (Future<String> each : told) {
            System.out.println(each.get());
        }
    }

    static KafkaConsumer<String, String> consumer(String group, Map<String, String> settings) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("group.id", group);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        if (!"consumer".equals(settings.get("group.protocol"))) {
            properties.put("session.timeout.ms", "3000");
            properties.put("heartbeat.interval.ms", "100");
        }
        properties.putAll(settings);
        return new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer());
    }

    static void until(String what, BooleanSupplier condition) {
        long deadline = System.nanoTime() + 40_000_000_000L;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException(what + " did not happen");
            }
        }
    }

    static boolean share(List<? extends Consumer<?, ?>> consumers) {
        Set<TopicPartition> all = new HashSet<>();
        int count = 0;
        boolean even = true;
        for (Consumer<?, ?> consumer : consumers) {
            try {
                consumer.poll(Duration.ofMillis(20));
            } catch (IllegalStateException soon) { // Java 3.9's new consumer may look at what it is just giving back
                return false;
            }
            count += consumer.assignment().size();
            even &= consumer.assignment().size() == 4 / consumers.size();
            all.addAll(consumer.assignment());
        }
        return even && count == 4 && all.size() == 4;
    }

    static String shareAndHandOver(String name, Map<String, String> settings) {
        KafkaConsumer<String, String> first = consumer("share-" + name, settings);
        KafkaConsumer<String, String> second = consumer("share-" + name, settings);
        first.subscribe(List.of("t"));
        until("the first has all", () -> share(List.of(first)));
        second.subscribe(List.of("t"));
        until("they share", () -> share(List.of(first, second)));
        second.close();
        until("the first has all again", () -> share(List.of(first)));
        first.close();
        return name + " shared and handed over";
    }

    static String readAndResume(String protocol) {
        Map<String, String> settings = Map.of("group.protocol", protocol);
        List<String> seen = new ArrayList<>();
        try (KafkaConsumer<String, String> first = consumer("read-" + protocol, settings)) {
            first.subscribe(List.of("t"));
            until("all is read", () -> {
                first.poll(Duration.ofMillis(50)).forEach(record -> seen.add(record.value()));
                return seen.size() >= 40;
            });
            Map<TopicPartition, OffsetAndMetadata> positions = first.assignment().stream().collect(
                Collectors.toMap(each -> each, each -> new OffsetAndMetadata(first.position(each), "so far")));
            first.commitSync(positions);
        }
        try (KafkaConsumer<String, String> second = consumer("read-" + protocol, settings)) {
            second.subscribe(List.of("t"));
            until("it is assigned", () -> share(List.of(second)));
            Map<TopicPartition, OffsetAndMetadata> committed = second.committed(second.assignment());
            Set<String> told = committed.values().stream()
                .map(each -> each.offset() + " " + each.metadata()).collect(Collectors.toCollection(TreeSet::new));
            second.seekToBeginning(second.assignment());
            second.pause(second.assignment());
            boolean quiet = second.poll(Duration.ofMillis(200)).isEmpty();
            second.resume(second.assignment());
            int[] again = {0};
            until("all is read again", () -> (again[0] += second.poll(Duration.ofMillis(50)).count()) >= 40);
            return protocol + " read " + seen.size() + " committed " + told + " paused " + quiet + " again " + again[0];
        }
    }

    static String restartStatic(String protocol) {
        Listener listener = new Listener(new ArrayList<>(), new HashSet<>());
        Map<String, String> settings = Map.of("group.protocol", protocol, "group.instance.id", "i1");
        Map<String, String> other = Map.of("group.protocol", protocol, "group.instance.id", "i2");
        KafkaConsumer<String, String> first = consumer("static-" + protocol, settings);
        KafkaConsumer<String, String> second = consumer("static-" + protocol, other);
        first.subscribe(List.of("t"), listener);
        second.subscribe(List.of("t"));
        // Java 3.9's new consumer shows an assignment before it tells the listener of it, in one of the next polls.
        until("they share", () -> share(List.of(first, second)) && listener.held.equals(first.assignment()));
        Set<TopicPartition> had = new HashSet<>(second.assignment());
        second.close();
        listener.events.clear();
        KafkaConsumer<String, String> again = consumer("static-" + protocol, other);
        again.subscribe(List.of("t"));
        until("it is back", () -> {
            first.poll(Duration.ofMillis(20));
            again.poll(Duration.ofMillis(20));
            return !again.assignment().isEmpty();
        });
        String told = protocol + " static same " + again.assignment().equals(had) + " others " + listener.events;
        again.close(); // a static member says nothing when it goes, as one that dies
        until("the silent one is replaced", () -> share(List.of(first)));
        first.close();
        return told;
    }

    static String migrate() {
        KafkaConsumer<String, String> old = consumer("migrate", Map.of("partition.assignment.strategy",
            "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"));
        old.subscribe(List.of("t"));
        until("the old one has all", () -> share(List.of(old)));
        KafkaConsumer<String, String> young = consumer("migrate", Map.of("group.protocol", "consumer"));
        young.subscribe(List.of("t"));
        until("old and new share", () -> share(List.of(old, young)));
        young.close();
        until("the old one has all again", () -> share(List.of(old)));
        old.close();
        return "migrated up and down";
    }

    record Listener(List<String> events, Set<TopicPartition> held) implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            events.add("revoked " + partitions.size());
            held.removeAll(partitions);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            events.add("assigned " + partitions.size());
            held.addAll(partitions);
        }
    }
}
