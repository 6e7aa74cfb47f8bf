import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.streams.tests.SmokeTestClient;
import org.apache.kafka.streams.tests.SmokeTestDriver;
import org.apache.kafka.streams.tests.SmokeTestUtil.VerificationResult;

/**
 * Kafka Streams' own smoke test, exactly once. Data is generated while four instances come and go: the first, in a
 * process of its own, is killed at work, three join, one of them leaves. Kafka's driver verifies the results.
 */
public class StreamsSmoke {
    static String bootstrap;
    static String directory;
    static String protocol;

    public static void main(String[] arguments) throws Exception {
        bootstrap = arguments[1];
        directory = arguments[2];
        protocol = arguments[3];
        if (arguments[0].equals("victim")) {
            work();
        } else {
            drive(Integer.parseInt(arguments[0]));
        }
    }

    static SmokeTestClient instance(String name) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("processing.guarantee", "exactly_once_v2");
        if (protocol.equals("classic")) {
            settings.put("session.timeout.ms", "3000");
            settings.put("heartbeat.interval.ms", "500");
        } else { // the broker has these settings
            settings.put("group.protocol", protocol);
        }
        settings.put("transaction.timeout.ms", "3000"); // what the killed one has left open holds up the others so long
        settings.put("replication.factor", "1");
        settings.put("state.dir", directory + "/" + name);
        SmokeTestClient instance = new SmokeTestClient(name);
        instance.start(settings);
        return instance;
    }

    /** The one to be killed; begins when it is told to, goes by itself if who started it is gone. */
    static void work() throws Exception {
        System.in.read();
        new Thread(() -> {
            try {
                System.in.read();
            } catch (IOException gone) {
                // just as good
            }
            Runtime.getRuntime().halt(0);
        }).start();
        instance("victim");
    }

    static void drive(int perKey) throws Exception {
        Process victim = new ProcessBuilder(System.getProperty("java.home") + "/bin/java", "-Xmx256m",
            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", System.getProperty("java.class.path"),
            "StreamsSmoke", "victim", bootstrap, directory, protocol).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(Arrays.stream(SmokeTestDriver.topics())
                .map(name -> new NewTopic(name, 5, (short) 1)).toList()).all().get();
        }
        victim.getOutputStream().write('\n');
        victim.getOutputStream().flush();
        BufferedReader said = new BufferedReader(new InputStreamReader(victim.getInputStream()));
        until("victim: SMOKE-TEST-CLIENT-STARTED", said);
        var data = CompletableFuture.supplyAsync(
            () -> SmokeTestDriver.generate(bootstrap, 10, perKey, Duration.ofSeconds(6)));
        until("processed 100 records", said);
        victim.destroyForcibly().waitFor();
        SmokeTestClient first = instance("first");
        instance("second");
        first.close();
        instance("third");
        VerificationResult result = verify(data.get(), perKey);
        System.out.println(result.result());
        System.out.println(result.passed() ? "PASSED" : "FAILED");
        Runtime.getRuntime().halt(result.passed() ? 0 : 1);
    }

    static void until(String beginning, BufferedReader said) throws IOException {
        String found;
        do {
            found = said.readLine();
            if (found == null) throw new IllegalStateException("the victim ended before it said: " + beginning);
        } while (!found.startsWith(beginning));
    }

    /**
     * The driver first looks whether transactions are open: it asks for the end of each partition, then for its last
     * stable offset. If an instance commits between the two, the second is larger, with any broker; then again.
     */
    static VerificationResult verify(Map<String, Set<Integer>> data, int perKey) throws Exception {
        VerificationResult result = SmokeTestDriver.verify(bootstrap, data, perKey, true);
        for (int n = 0; n < 20 && result.result().contains("larger than topic endOffset"); n++) {
            result = SmokeTestDriver.verify(bootstrap, data, perKey, true);
        }
        return result;
    }
}
