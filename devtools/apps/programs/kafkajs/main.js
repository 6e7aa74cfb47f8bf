// kafkajs: admin calls, an idempotent producer, a transaction, a group, ACLs on a cluster without an authorizer.
const { Kafka, logLevel } = require("kafkajs");

const kafka = new Kafka({ brokers: [process.env.BOOTSTRAP], logLevel: logLevel.NOTHING });
const topic = "kafkajs";

async function main() {
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: 3 }], waitForLeaders: true });
  const metadata = await admin.fetchTopicMetadata({ topics: [topic] });
  if (metadata.topics[0].partitions.length !== 3) throw new Error("partitions: " + JSON.stringify(metadata));
  const filter = { resourceType: 1, resourcePatternType: 1, operation: 1, permissionType: 1 };
  const refused = await admin.describeAcls(filter).then(() => "allowed", (error) => error.type);
  if (refused !== "SECURITY_DISABLED") throw new Error("describeAcls: " + refused);

  const producer = kafka.producer({ idempotent: true, transactionalId: "kafkajs", maxInFlightRequests: 1 });
  await producer.connect();
  const aborted = await producer.transaction();
  await aborted.send({ topic, messages: [{ value: "aborted" }] });
  await aborted.abort();
  const committed = await producer.transaction();
  await committed.send({ topic, messages: Array.from({ length: 30 }, (_, n) => ({ key: String(n), value: String(n) })) });
  await committed.commit();

  const consumer = kafka.consumer({ groupId: "kafkajs" });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  const seen = new Set();
  await new Promise((resolve) => {
    consumer.run({
      eachMessage: async ({ message }) => {
        seen.add(message.value.toString());
        if (seen.size === 30) resolve();
      },
    });
  });
  if (seen.has("aborted")) throw new Error("an aborted record was read");
  await consumer.disconnect();
  await producer.disconnect();
  await admin.deleteTopics({ topics: [topic] });
  await admin.disconnect();
}

main().then(() => process.exit(0), (error) => { console.error(error); process.exit(1); });
