import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Timer messages of RocketMQ through its own client, for a benchmark that is not written in Java.
 *
 * <p>Arguments: the address of the name server, and a file to which arrivals are written. Standard input has frames of a
 * due time (8 bytes, milliseconds since 1970), a length (4 bytes) and a payload of that length. A due time of 0 has
 * nothing after it, and asks for an answer, one byte on standard output, once all before it are acknowledged. The first
 * such byte comes unasked, when messages pass. An arrival is a length (4 bytes) and a payload.
 */
public final class RocketClient {
    private static final String TOPIC = "later";
    private static final byte[] PROBE = "probe".getBytes(StandardCharsets.UTF_8);
    private static final int IN_FLIGHT = 500;
    private static final int RETRY_MS = 100;
    private static final int TIMEOUT_MS = 60_000;

    private static volatile boolean probed;

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        System.setOut(System.err); // what the client prints is no answer
        DefaultMQProducer producer = new DefaultMQProducer("senders");
        producer.setNamesrvAddr(arguments[0]);
        producer.setSendMsgTimeout(TIMEOUT_MS);
        producer.start();
        probe(producer); // the topic is made by its first message
        DataOutputStream arrivals =
                new DataOutputStream(new BufferedOutputStream(new FileOutputStream(arguments[1]), 1 << 16));
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("readers");
        consumer.setNamesrvAddr(arguments[0]);
        consumer.subscribe(TOPIC, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> forward(messages, arrivals));
        consumer.start();
        while (!probed) {
            probe(producer);
            Thread.sleep(RETRY_MS);
        }
        answers.write('.');
        answers.flush();
        try {
            send(producer, answers);
        } catch (Exception failed) {
            failed.printStackTrace();
        }
        System.exit(1); // its threads would run on
    }

    private static void probe(DefaultMQProducer producer) throws InterruptedException {
        while (true) {
            try {
                producer.send(new Message(TOPIC, PROBE));
                return;
            } catch (InterruptedException stopped) {
                throw stopped;
            } catch (Exception notYet) {
                Thread.sleep(RETRY_MS);
            }
        }
    }

    private static ConsumeConcurrentlyStatus forward(List<MessageExt> messages, DataOutputStream arrivals) {
        synchronized (arrivals) {
            try {
                for (MessageExt message : messages) {
                    boolean probe = Arrays.equals(message.getBody(), PROBE);
                    probed |= probe;
                    if (probe || !probed) { // until then it is what came before a kill, and the file has no reader yet
                        continue;
                    }
                    arrivals.writeInt(message.getBody().length);
                    arrivals.write(message.getBody());
                }
                arrivals.flush();
            } catch (IOException gone) {
                System.exit(1);
            }
        }
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }

    private static void send(DefaultMQProducer producer, PrintStream answers) throws Exception {
        DataInputStream input = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        Semaphore free = new Semaphore(IN_FLIGHT);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        while (true) {
            long dueMs;
            try {
                dueMs = input.readLong();
            } catch (EOFException end) {
                return;
            }
            if (dueMs == 0) {
                free.acquire(IN_FLIGHT);
                free.release(IN_FLIGHT);
                if (failure.get() != null) {
                    throw new IllegalStateException("a message was refused", failure.get());
                }
                answers.write('.');
                answers.flush();
                continue;
            }
            byte[] payload = new byte[input.readInt()];
            input.readFully(payload);
            Message message = new Message(TOPIC, payload);
            message.setDeliverTimeMs(dueMs);
            free.acquire();
            producer.send(message, new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    if (result.getSendStatus() != SendStatus.SEND_OK) {
                        failure.set(new IllegalStateException(result.getSendStatus().name()));
                    }
                    free.release();
                }

                @Override
                public void onException(Throwable refused) {
                    failure.set(refused);
                    free.release();
                }
            });
        }
    }
}
