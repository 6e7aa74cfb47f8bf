import java.io.FileWriter;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Path;
import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.StringSerializer;

/** What devtools/soak/writer.py does, by Java's client: an epoch per transaction (transaction.version 2). */
public class SoakWriter {
    static final Random random = new Random();
    static long process = ProcessHandle.current().pid() * 1_000_000;
    static long next = 0;
    static Writer diary;

    public static void main(String[] arguments) throws Exception {
        String name = arguments[2];
        Path file = Path.of(arguments[1], name + "-" + ProcessHandle.current().pid() + ".jsonl");
        diary = new FileWriter(file.toFile());
        while (true) {
            Properties settings = new Properties();
            settings.put("bootstrap.servers", arguments[0]);
            settings.put("transactional.id", name);
            settings.put("transaction.timeout.ms", "5000");
            settings.put("max.block.ms", "20000");
            settings.put("delivery.timeout.ms", "5000");
            settings.put("request.timeout.ms", "1000");
            settings.put("linger.ms", "0");
            try (Producer<String, String> producer =
                    new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
                producer.initTransactions();
                while (true) transact(producer, arguments[3], Integer.parseInt(arguments[4]));
            } catch (KafkaException failed) {
                // a new producer takes over
            }
        }
    }

    static void transact(Producer<String, String> producer, String topic, int partitions) throws IOException {
        List<Integer> numbers = new ArrayList<>();
        List<String> values = new ArrayList<>();
        int count = 1 + random.nextInt(4);
        for (int index = 0; index < count; index++) {
            numbers.add(random.nextInt(partitions));
            values.add(process + "." + next++);
        }
        write("invoke", topic, numbers, values, null);
        boolean commits = random.nextInt(5) != 0;
        boolean deciding = false;
        List<Long> offsets = new ArrayList<>();
        try {
            producer.beginTransaction();
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int index = 0; index < count; index++) {
                sent.add(producer.send(new ProducerRecord<>(topic, numbers.get(index), null, values.get(index))));
            }
            for (Future<RecordMetadata> each : sent) {
                try {
                    offsets.add(each.get().offset());
                } catch (Exception failed) {
                    throw new KafkaException(failed);
                }
            }
            if (commits) {
                deciding = true;
                producer.commitTransaction();
            } else {
                producer.abortTransaction();
            }
        } catch (KafkaException failed) {
            write(deciding ? "info" : "fail", topic, numbers, values, null);
            if (deciding) process++;
            throw failed;
        }
        write(commits ? "ok" : "fail", topic, numbers, values, commits ? offsets : null);
    }

    static void write(String type, String topic, List<Integer> numbers, List<String> values, List<Long> offsets)
            throws IOException {
        StringJoiner parts = new StringJoiner(", ", "[", "]");
        for (int index = 0; index < values.size(); index++) {
            String offset = offsets == null ? "" : ", " + offsets.get(index);
            parts.add("[\"send\", \"" + topic + "-" + numbers.get(index) + "\", \"" + values.get(index) + "\"" + offset + "]");
        }
        diary.write("{\"process\": " + process + ", \"type\": \"" + type + "\", \"f\": \"txn\", \"value\": " + parts + "}\n");
        diary.flush();
    }
}
