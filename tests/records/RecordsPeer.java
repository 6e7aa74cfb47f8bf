import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;

import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.ByteBufferOutputStream;
import org.apache.kafka.common.utils.Utils;

/** Prints every batch and record of the file IN, and writes them anew, by Kafka's own builder, to the file OUT. */
public class RecordsPeer {
    public static void main(String[] args) throws Exception {
        MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(Path.of(args[0]))));
        ByteBufferOutputStream out = new ByteBufferOutputStream(1 << 20);
        StringBuilder text = new StringBuilder();
        for (MutableRecordBatch batch : records.batches()) {
            batch.ensureValid();
            text.append(String.format("batch %d..%d epoch %d codec %d time %d txn %d control %d horizon %d max %d "
                    + "producer %d %d %d..%d count %d%n",
                batch.baseOffset(), batch.lastOffset(), batch.partitionLeaderEpoch(), batch.compressionType().id,
                batch.timestampType().id, batch.isTransactional() ? 1 : 0, batch.isControlBatch() ? 1 : 0,
                batch.deleteHorizonMs().orElse(-1), batch.maxTimestamp(), batch.producerId(), batch.producerEpoch(),
                batch.baseSequence(), batch.lastSequence(), batch.countOrNull()));
            out.write(rebuilt(batch, text).buffer());
        }
        System.out.print(text);
        ByteBuffer written = out.buffer();
        written.flip();
        Files.write(Path.of(args[1]), Utils.toArray(written));
    }

    static MemoryRecords rebuilt(MutableRecordBatch batch, StringBuilder text) {
        if (batch.isControlBatch()) {
            Record only = batch.iterator().next();
            print(only, text);
            return MemoryRecords.withEndTransactionMarker(batch.baseOffset(), only.timestamp(),
                batch.partitionLeaderEpoch(), batch.producerId(), batch.producerEpoch(),
                EndTransactionMarker.deserialize(only));
        }
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(new ByteBufferOutputStream(1024), batch.magic(),
            Compression.of(batch.compressionType()).build(), batch.timestampType(), batch.baseOffset(),
            batch.maxTimestamp(), batch.producerId(), batch.producerEpoch(), batch.baseSequence(),
            batch.isTransactional(), false, batch.partitionLeaderEpoch(), Integer.MAX_VALUE,
            batch.deleteHorizonMs().orElse(-1));
        for (Record record : batch) {
            print(record, text);
            builder.appendWithOffset(record.offset(), record.timestamp(), record.key(), record.value(), record.headers());
        }
        return builder.build();
    }

    static void print(Record record, StringBuilder text) {
        text.append(String.format("  %d %d %s %s", record.offset(), record.timestamp(),
            hex(record.key()), hex(record.value())));
        for (Header header : record.headers()) {
            text.append(' ').append(hex(ByteBuffer.wrap(header.key().getBytes(StandardCharsets.UTF_8))));
            text.append('=').append(hex(header.value() == null ? null : ByteBuffer.wrap(header.value())));
        }
        text.append('\n');
    }

    static String hex(ByteBuffer bytes) {
        return bytes == null ? "null" : "'" + HexFormat.of().formatHex(Utils.toArray(bytes)) + "'";
    }
}
