import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Locale;

import kafka.server.DelayedOperation;
import kafka.server.DelayedOperationPurgatory;
import org.apache.kafka.server.util.timer.SystemTimer;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Apache Kafka's purgatory under the same load as ours; benchmarks/purgatory.py has the other half and explains it.
 * Questions: "load REQUESTS RATE TIMEOUT_MS P50_MS P75_MS" (Kafka's own TestPurgatoryPerformance, run as it is, in a
 * JVM that is warm) and "purge OPERATIONS".
 */
public class PurgatoryPeer {
    static final int CALM_TURNS = 50_000;
    static final PrintStream OUT = System.out;
    static final ByteArrayOutputStream PRINTED = new ByteArrayOutputStream();

    public static void main(String[] args) throws Exception {
        System.setOut(new PrintStream(PRINTED, true));  // once: Scala keeps the stream it finds first
        for (int i = 0; i < 3; i++) load("load 200000 200000 200 20 60".split(" "));
        for (int i = 0; i < 3; i++) purge(100_000);
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.trim().split(" ");
            String answer = switch (words[0]) {
                case "load" -> load(words);
                case "purge" -> purge(Integer.parseInt(words[1]));
                default -> throw new IOException("unknown question: " + line);
            };
            OUT.println("= " + answer);
            OUT.flush();
        }
    }

    static String load(String[] words) {
        System.gc();
        PRINTED.reset();
        kafka.TestPurgatoryPerformance.main(new String[] {
            "--num", words[1], "--rate", words[2], "--timeout", words[3], "--pct50", words[4], "--pct75", words[5],
            "--size", "100",
        });
        String[] lines = PRINTED.toString().trim().split("\n");
        String[] figures = lines[lines.length - 1].split("\t");
        double cpu = Double.parseDouble(figures[3]) * 1000 / Double.parseDouble(words[1]);
        return String.format(
            Locale.ROOT, "elapsed=%s target=%s actual=%s cpu=%.3f", figures[0], figures[1], figures[2], cpu);
    }

    static class Waiting extends DelayedOperation {
        volatile boolean ready;

        Waiting(long delayMs) {
            super(delayMs, Option.empty());
        }

        @Override
        public void onExpiration() { }

        @Override
        public void onComplete() { }

        @Override
        public boolean tryComplete() {
            return ready && forceComplete();
        }
    }

    /** How long one who adds and checks is held up, at worst, while so many completed operations are purged. */
    static String purge(int operations) throws Exception {
        DelayedOperationPurgatory<Waiting> purgatory =
            new DelayedOperationPurgatory<>("peer", new SystemTimer("peer"), 0, 1000, false, true);
        try {
            for (int i = 0; i < operations; i++) {
                Waiting operation = new Waiting(600_000);
                purgatory.tryCompleteElseWatch(operation, keys("a" + i % 100, "b" + i % 100, "c" + i % 100));
                operation.forceComplete();
            }
            System.gc();
            double calm = 0;
            for (int turn = 0; turn < CALM_TURNS; turn++) calm = Math.max(calm, turnMs(purgatory, turn));
            Thread purger = new Thread(() -> purgatory.advanceClock(0));
            purger.start();
            double longest = 0;
            for (int turn = 0; purger.isAlive(); turn++) longest = Math.max(longest, turnMs(purgatory, turn));
            return String.format(Locale.ROOT, "longest=%.3f calm=%.3f", longest, calm);
        } finally {
            purgatory.shutdown();
        }
    }

    static double turnMs(DelayedOperationPurgatory<Waiting> purgatory, int turn) {
        long before = System.nanoTime();
        Waiting operation = new Waiting(600_000);
        purgatory.tryCompleteElseWatch(operation, keys("probe", "a" + turn % 100, "b" + turn % 100));
        operation.ready = true;
        purgatory.checkAndComplete("probe");
        return (System.nanoTime() - before) / 1e6;
    }

    static Seq<Object> keys(Object... keys) {
        return CollectionConverters.asScala(java.util.Arrays.asList(keys)).toSeq();
    }
}
