import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.ref.Reference;
import java.util.Arrays;
import java.util.Locale;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

import com.sun.management.OperatingSystemMXBean;
import org.apache.kafka.server.util.timer.SystemTimer;
import org.apache.kafka.server.util.timer.TimerTask;

/**
 * Apache Kafka's SystemTimer under the same load as ours; benchmarks/timer.py has the other half and explains it.
 * Questions: "pending TASKS OPERATIONS", "burst TASKS MS", "lateness RATE MS".
 */
public class TimerPeer {
    static final long REAPER_POLL_MS = 200;
    static final int CHUNK = 5_000;
    static final OperatingSystemMXBean PROCESS =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    static final SplittableRandom RANDOM = new SplittableRandom(7);

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 4; i++) {  // the compiler has seen everything before the first question
            pending(10_000, 300_000);
            burst(100_000, 100);
            lateness(100_000, 200);
        }
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.trim().split(" ");
            int first = Integer.parseInt(words[1]);
            int second = Integer.parseInt(words[2]);
            String answer = switch (words[0]) {
                case "pending" -> pending(first, second);
                case "burst" -> burst(first, second);
                case "lateness" -> lateness(first, second);
                default -> throw new IOException("unknown question: " + line);
            };
            System.out.println("= " + answer);
            System.out.flush();
        }
    }

    static class Idle extends TimerTask {
        Idle(long delayMs) {
            super(delayMs);
        }

        @Override
        public void run() { }
    }

    /** The thread that turns the wheel, as the purgatory's reaper does. */
    static class Reaper extends Thread implements AutoCloseable {
        private final SystemTimer timer = new SystemTimer("peer");
        private volatile boolean running = true;

        Reaper() {
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            try {
                while (running) timer.advanceClock(REAPER_POLL_MS);
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }

        @Override
        public void close() throws InterruptedException {
            running = false;
            join();
            timer.close();
        }
    }

    static int[] delays(int count, int from, int to) {
        return RANDOM.ints(count, from, to).toArray();
    }

    static String pending(int tasks, int operations) throws Exception {
        int[] far = delays(tasks, 60_000, 3_600_000);
        int[] near = delays(operations, 1_000, 30_000);
        long before = usedBytes();
        try (Reaper reaper = new Reaper()) {
            SystemTimer timer = reaper.timer;
            long start = PROCESS.getProcessCpuTime();
            for (int delay : far) timer.add(new Idle(delay));
            double fill = (double) (PROCESS.getProcessCpuTime() - start) / tasks;
            double bytes = (double) (usedBytes() - before) / tasks;
            Reference.reachabilityFence(far);

            start = THREADS.getCurrentThreadCpuTime();
            for (int delay : near) {
                Idle task = new Idle(delay);
                timer.add(task);
                task.cancel();
            }
            double fresh = (double) (THREADS.getCurrentThreadCpuTime() - start) / operations;

            long madeNs = 0;
            Idle[] made = new Idle[CHUNK];
            for (int first = 0; first + CHUNK <= operations; first += CHUNK) {
                for (int i = 0; i < CHUNK; i++) made[i] = new Idle(near[first + i]);
                start = THREADS.getCurrentThreadCpuTime();
                for (Idle task : made) {
                    timer.add(task);
                    task.cancel();
                }
                madeNs += THREADS.getCurrentThreadCpuTime() - start;
            }

            Idle[] waiting = Arrays.stream(near).limit(1000).mapToObj(Idle::new).toArray(Idle[]::new);
            start = THREADS.getCurrentThreadCpuTime();
            for (int i = 0; i < operations; i++) timer.add(waiting[i % 1000]);
            double again = (double) (THREADS.getCurrentThreadCpuTime() - start) / operations;
            return String.format(
                Locale.ROOT, "fill=%.1f bytes=%.1f fresh=%.1f made=%.1f again=%.1f", fill, bytes, fresh,
                (double) madeNs / operations, again);
        }
    }

    static long usedBytes() throws InterruptedException {
        for (int i = 0; i < 2; i++) System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    static String burst(int tasks, int ms) throws Exception {
        int[] delays = delays(tasks, 0, ms);
        CountDownLatch done = new CountDownLatch(1);
        AtomicInteger left = new AtomicInteger(tasks);
        class Counted extends TimerTask {
            Counted(long delayMs) {
                super(delayMs);
            }

            @Override
            public void run() {
                if (left.decrementAndGet() == 0) done.countDown();
            }
        }
        System.gc();
        try (Reaper reaper = new Reaper()) {
            long start = System.nanoTime();
            long cpu = PROCESS.getProcessCpuTime();
            for (int delay : delays) reaper.timer.add(new Counted(delay));
            done.await();
            double took = (System.nanoTime() - start) / 1e6;
            return String.format(Locale.ROOT, "ms=%.1f cpu=%.1f", took, (PROCESS.getProcessCpuTime() - cpu) / 1e6);
        }
    }

    static String lateness(int rate, int ms) throws Exception {
        int perMs = rate / 1000;
        int tasks = perMs * ms;
        int[] delays = delays(tasks, 10, 500);
        long[] late = new long[tasks];
        CountDownLatch done = new CountDownLatch(tasks);
        class Timed extends TimerTask {
            private final int index;
            private final long dueNs;

            Timed(int index, long delayMs) {
                super(delayMs);
                this.index = index;
                this.dueNs = System.nanoTime() + delayMs * 1_000_000;
            }

            @Override
            public void run() {
                late[index] = System.nanoTime() - dueNs;
                done.countDown();
            }
        }
        System.gc();
        try (Reaper reaper = new Reaper()) {
            long start = System.nanoTime();
            for (int tick = 0, index = 0; tick < ms; tick++) {
                long tickNs = start + tick * 1_000_000L;
                for (long now = System.nanoTime(); now < tickNs; now = System.nanoTime()) LockSupport.parkNanos(tickNs - now);
                for (int i = 0; i < perMs; i++, index++) reaper.timer.add(new Timed(index, delays[index]));
            }
            done.await();
        }
        Arrays.sort(late);
        return String.format(Locale.ROOT, "p50=%.3f p99=%.3f", late[tasks / 2] / 1e6, late[(int) (tasks * 0.99)] / 1e6);
    }
}
