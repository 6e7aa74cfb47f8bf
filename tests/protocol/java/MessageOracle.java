import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Kafka's own reading of messages. A line "class version hex" is answered by "hex json": the message decoded, encoded
 * again, and shown as Kafka shows it; or by "! reason".
 */
public class MessageOracle {
    public static void main(String[] arguments) throws Exception {
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            System.out.println(answer(line.split(" ", -1)));
            System.out.flush();
        }
    }

    private static String answer(String[] question) {
        try {
            Class<?> type = Class.forName(question[0]);
            short version = Short.parseShort(question[1]);
            ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(question[2]));
            Message message = (Message) type.getConstructor(Readable.class, short.class)
                .newInstance(new ByteBufferAccessor(buffer), version);
            if (buffer.hasRemaining()) {
                return "! " + buffer.remaining() + " bytes left over";
            }
            JsonNode shown = (JsonNode) Class.forName(question[0] + "JsonConverter")
                .getMethod("write", type, short.class, boolean.class)
                .invoke(null, message, version, true);
            ObjectSerializationCache sizes = new ObjectSerializationCache();
            byte[] again = new byte[message.size(sizes, version)];
            message.write(new ByteBufferAccessor(ByteBuffer.wrap(again)), sizes, version);
            return HexFormat.of().formatHex(again) + " " + shown;
        } catch (ReflectiveOperationException | RuntimeException error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return "! " + cause;
        }
    }
}
