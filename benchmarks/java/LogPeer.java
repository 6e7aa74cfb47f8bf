import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

import kafka.log.UnifiedLog;
import kafka.server.BrokerTopicStats;
import kafka.server.RequestLocal;
import org.apache.kafka.common.record.FileRecords;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.VerificationGuard;

/**
 * Apache Kafka's UnifiedLog at the same work as ours; benchmarks/log.py has the other half and explains it.
 * Questions: "append FOLDER BATCH-FILE COUNT", "read FOLDER SIZE BYTES", "find FOLDER SIZE COUNT", "recover FOLDER",
 * "open ROOT".
 */
public class LogPeer {
    static final KafkaScheduler SCHEDULER = new KafkaScheduler(1);
    static final BrokerTopicStats STATS = new BrokerTopicStats(false);

    public static void main(String[] args) throws Exception {
        SCHEDULER.startup();
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            String[] words = line.trim().split(" ");
            String answer = switch (words[0]) {
                case "append" -> append(new File(words[1]), Path.of(words[2]), Integer.parseInt(words[3]));
                case "read" -> read(new File(words[1]), Integer.parseInt(words[2]), Long.parseLong(words[3]));
                case "find" -> find(new File(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3]));
                case "recover" -> recover(new File(words[1]));
                case "open" -> open(new File(words[1]));
                default -> throw new IOException("unknown question: " + line);
            };
            System.out.println("= " + answer);
            System.out.flush();
        }
    }

    /** Nanoseconds that this thread has worked: neighbours on the machine do not count. */
    static long cpuTime() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }

    static UnifiedLog log(File folder, boolean clean) {
        Properties settings = new Properties();
        settings.put("max.message.bytes", "4194304");
        return UnifiedLog.apply(
            folder, new LogConfig(settings), 0, 0, SCHEDULER, STATS, Time.SYSTEM, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000, new LogDirFailureChannel(10), clean,
            scala.Option.empty(), true, new ConcurrentHashMap<>(), false, LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
    }

    static String append(File folder, Path file, int count) throws IOException {
        byte[] batch = Files.readAllBytes(file);
        folder.mkdirs();
        UnifiedLog log = log(folder, true);
        RequestLocal local = RequestLocal.withThreadConfinedCaching();
        ByteBuffer buffer = ByteBuffer.wrap(batch);
        long start = cpuTime();
        for (int i = 0; i < count; i++) {
            buffer.putLong(0, 0);  // a client sends offset 0; the append of before has changed it in place
            log.appendAsLeader(MemoryRecords.readableRecords(buffer), 0, AppendOrigin.CLIENT,
                MetadataVersion.latestProduction(), local, VerificationGuard.SENTINEL);
        }
        long time = cpuTime() - start;
        log.close();
        delete(folder);
        return "MB/s=" + (double) batch.length * count * 1000 / time;
    }

    static String read(File folder, int size, long bytes) throws IOException {
        UnifiedLog log = log(folder, true);
        ByteBuffer socket = ByteBuffer.allocateDirect(size);
        long done = 0;
        long offset = 0;
        long start = cpuTime();
        while (done < bytes) {
            FileRecords records = (FileRecords) log.read(offset, size, FetchIsolation.LOG_END, true).records;
            socket.clear();
            socket.limit(records.sizeInBytes());
            records.readInto(socket, 0);
            done += records.sizeInBytes();
            // A client finds the next offset in the last batch; it costs the broker nothing.
            offset += advance(socket, offset);
            if (offset >= log.logEndOffset()) offset = 0;
        }
        long time = cpuTime() - start;
        log.close();
        return "MB/s=" + (double) done * 1000 / time;
    }

    static String find(File folder, int size, int count) throws IOException {
        UnifiedLog log = log(folder, true);
        long end = log.logEndOffset();
        long found = 0;
        long start = cpuTime();
        for (long i = 0; i < count; i++) {
            found += log.read(i * 7919 % end, size, FetchIsolation.LOG_END, true).records.sizeInBytes();
        }
        long time = cpuTime() - start;
        log.close();
        if (found == 0) throw new IOException("nothing found");
        return "us=" + (double) time / 1000 / count;
    }

    /** How far the whole batches in the buffer reach beyond OFFSET. */
    static long advance(ByteBuffer data, long offset) {
        int position = 0;
        long next = offset;
        while (position + 61 <= data.limit()) {
            int size = data.getInt(position + 8) + 12;
            if (position + size > data.limit()) break;
            next = data.getLong(position) + data.getInt(position + 23) + 1;
            position += size;
        }
        return next - offset;
    }

    static String recover(File folder) {
        long start = System.nanoTime();
        UnifiedLog log = log(folder, false);
        long time = System.nanoTime() - start;
        long end = log.logEndOffset();
        log.close();
        return "s=" + time / 1e9 + " end=" + end;
    }

    static String open(File root) {
        File[] folders = root.listFiles(File::isDirectory);
        Arrays.sort(folders);
        List<UnifiedLog> logs = new ArrayList<>();
        System.gc();
        long before = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
        long start = System.nanoTime();
        for (File folder : folders) logs.add(log(folder, true));
        long time = System.nanoTime() - start;
        System.gc();
        long after = Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
        double memory = (double) (after - before) / 1000 / folders.length;
        for (UnifiedLog log : logs) log.close();
        return "s=" + time / 1e9 + " kB=" + memory;
    }

    static void delete(File folder) throws IOException {
        try (Stream<Path> paths = Files.walk(folder.toPath())) {
            paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        }
    }
}
