import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints what Apache Kafka says of every broker and topic setting, and what Java reads in a properties file. */
public class SettingsOracle {
    public static void main(String[] arguments) throws Exception {
        Map<String, String> modes = kafka.server.DynamicBrokerConfig$.MODULE$.dynamicConfigUpdateModes();
        show("broker", kafka.server.KafkaConfig.configDef(), modes);
        show("topic", LogConfig.configDefCopy(), Map.of());
        for (Map.Entry<String, String> entry : ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS.entrySet()) {
            line("synonym", entry.getKey(), entry.getValue());
        }
        Properties read = new Properties();
        read.load(new StringReader(new String(Files.readAllBytes(Path.of(arguments[0])), StandardCharsets.UTF_8)));
        for (String name : new TreeSet<>(read.stringPropertyNames())) {
            line("property", name, read.getProperty(name));
        }
    }

    private static void show(String what, ConfigDef settings, Map<String, String> modes) {
        for (String name : new TreeSet<>(settings.names())) {
            ConfigDef.ConfigKey key = settings.configKeys().get(name);
            String text = ConfigDef.convertToString(key.defaultValue, key.type);
            String limits = key.validator == null ? "" : key.validator.toString();
            line(what, name, key.type.toString(), text, limits, modes.getOrDefault(name, "read-only"));
        }
    }

    private static void line(String... columns) {
        StringBuilder out = new StringBuilder();
        for (String column : columns) {
            out.append(column == null ? "null" : escaped(column)).append('\t');
        }
        System.out.println(out);
    }

    private static String escaped(String text) {
        StringBuilder out = new StringBuilder("=");
        for (char c : text.toCharArray()) {
            out.append(c < 32 || c > 126 || c == '\\' ? String.format("\\u%04x", (int) c) : String.valueOf(c));
        }
        return out.toString();
    }
}
