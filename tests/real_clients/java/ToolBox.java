import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.common.utils.Exit;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;

/**
 * Kafka's command line tools, many of them in one JVM. A line on standard input is a class and its arguments, with tabs
 * between them; what the tool printed comes back, then a line with its exit code.
 */
public final class ToolBox {
    static final String END = "\u0001exit ";

    /** Thrown where a tool would end the process. Some catch it and try again to end, with another code. */
    static final class Ended extends Error {
    }

    /** Where tools print to; Scala's console keeps the stream it first sees, so that one must stay. */
    static final class Switch extends OutputStream {
        volatile ByteArrayOutputStream target = new ByteArrayOutputStream();
        volatile boolean ended;
        volatile int code;

        void begin() {
            target = new ByteArrayOutputStream();
            ended = false;
            code = 0;
        }

        void end(int code, String message) {
            if (!ended) {
                if (message != null) {
                    System.out.println(message);
                }
                System.out.flush();
                this.code = code;
                ended = true;
            }
            throw new Ended();
        }

        @Override
        public void write(int value) throws IOException {
            if (!ended) {
                target.write(value);
            }
        }

        @Override
        public void write(byte[] data, int start, int size) throws IOException {
            if (!ended) {
                target.write(data, start, size);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Switch printed = new Switch();
        System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
        System.setErr(System.out);
        // A tool that ends early leaves its client behind, which goes on to look for a broker that may be gone.
        Configurator.setLevel("org.apache.kafka.clients.NetworkClient", Level.ERROR);
        Exit.setExitProcedure(printed::end);
        Exit.setHaltProcedure(printed::end);
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = input.readLine()) != null) {
            String[] words = line.split("\t", -1);
            printed.begin();
            run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.out.flush();
            answers.print(printed.target.toString(StandardCharsets.UTF_8));
            answers.println();
            answers.println(END + printed.code);
        }
    }

    static void run(String tool, String[] words) throws ReflectiveOperationException {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) words);
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof Ended)) {
                throw error;
            }
        }
    }
}
