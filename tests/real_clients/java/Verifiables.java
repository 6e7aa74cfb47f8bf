import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.kafka.tools.VerifiableConsumer;
import org.apache.kafka.tools.VerifiableProducer;

/**
 * VerifiableConsumers and a VerifiableProducer in one JVM, as its own programs: until they end or the JVM is asked to.
 * Each argument is one of them, a file for what it prints and its own arguments, with tabs between them. The producer
 * comes last, because it prints to whatever standard output is at the time.
 */
public class Verifiables {
    public static void main(String[] tools) throws Exception {
        for (String tool : tools) {
            String[] words = tool.split("\t");
            Path file = Path.of(words[1]);
            String[] own = Arrays.copyOfRange(words, 2, words.length);
            System.setOut(new PrintStream(new FileOutputStream(file.toFile()), true));
            new Thread(() -> {
                if (words[0].equals("VerifiableConsumer")) {
                    VerifiableConsumer.main(own);
                } else {
                    VerifiableProducer.main(own);
                }
            }).start();
            while (Files.size(file) == 0) Thread.sleep(10); // it has said that it is up, so it has found its output
        }
    }
}
