import java.time.Duration;
import java.util.*;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.streams.tests.SmokeTestClient;
import org.apache.kafka.streams.tests.SmokeTestDriver;

/** Kafka Streams' own smoke test, exactly once: data is generated, instances come and go, the results are verified. */
public class StreamsSmoke {
    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("topics")) {
            System.out.println(String.join(" ", SmokeTestDriver.topics()));
            return;
        }
        String bootstrap = arguments[0];
        int perKey = Integer.parseInt(arguments[1]);
        int keys = 10;
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("session.timeout.ms", "10000");
        settings.put("replication.factor", "1");
        boolean[] passed = new boolean[1];
        AtomicBoolean generating = new AtomicBoolean(true);
        Thread driver = new Thread(() -> {
            var data = SmokeTestDriver.generate(bootstrap, keys, perKey, Duration.ofSeconds(10));
            generating.set(false);
            var result = SmokeTestDriver.verify(bootstrap, data, perKey, true);
            passed[0] = result.passed();
            System.out.println(result.result());
        });
        driver.start();
        List<SmokeTestClient> instances = new ArrayList<>();
        int started = 0;
        while (driver.isAlive()) {
            if (started < 2 && generating.get()) {
                SmokeTestClient instance = new SmokeTestClient("instance-" + started++);
                instances.add(instance);
                Properties own = new Properties();
                own.putAll(settings);
                own.put("state.dir", arguments[2] + "/" + started);
                instance.start(own);
                if (started == 2) instances.remove(0).close();
            }
            driver.join(500);
        }
        for (SmokeTestClient instance : instances) instance.close();
        System.out.println(passed[0] ? "PASSED" : "FAILED");
        System.exit(passed[0] ? 0 : 1);
    }
}
