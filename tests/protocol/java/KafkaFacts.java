import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;

/**
 * What Kafka says of itself, a line each: "api key name version request-header response-header", stable versions only,
 * and "error code name retriable refresh".
 */
public class KafkaFacts {
    public static void main(String[] arguments) {
        for (ApiKeys api : ApiKeys.values()) {
            for (short version = api.oldestVersion(); version <= api.latestVersion(false); version++) {
                System.out.println("api " + api.id + " " + api.name + " " + version + " "
                    + api.requestHeaderVersion(version) + " " + api.responseHeaderVersion(version));
            }
        }
        for (Errors error : Errors.values()) {
            System.out.println("error " + error.code() + " " + error.name() + " "
                + (error.exception() instanceof RetriableException) + " "
                + (error.exception() instanceof InvalidMetadataException));
        }
    }
}
