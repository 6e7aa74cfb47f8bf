import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.server.config.DynamicBrokerConfig;

/** Prints each broker setting of Apache Kafka 4.3, and whether it can be changed while the broker runs. */
public class ModesOracle {
    public static void main(String[] arguments) {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        for (String name : new TreeSet<>(kafka.server.KafkaConfig.configDef().names())) {
            System.out.println(name + "\t" + modes.getOrDefault(name, "read-only"));
        }
    }
}
