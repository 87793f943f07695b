import { startWriter } from "@holdfast/test/faults/acknowledged-writer.ts";
import type { EachBatchPayload, Kafka, Producer } from "kafkajs";
import type { Platform } from "../platform/platform.ts";
import type { RunningService } from "../platform/services.ts";
import { waitUntil } from "../wait-until.ts";
import { serviceKafka } from "./kafka-clients.ts";

const topic = "ledger";
const partitions = 6;

/** Writes numbered records with acks=all to a topic of six partitions, and records each that was acknowledged. */
export async function writeRecords(platform: Platform, service: RunningService, signal: AbortSignal) {
  const kafka = serviceKafka(platform, service);
  const admin = kafka.admin();
  await admin.connect();
  await admin.createTopics({ topics: [{ topic, numPartitions: partitions }], waitForLeaders: false });
  // Only leaders return offsets. A wait of the client itself ends with an error at a broker without the new topic.
  const hasLeaders = async () => (await admin.fetchTopicOffsets(topic)).length === partitions;
  await waitUntil("the leaders have the topic", hasLeaders);
  await admin.disconnect();
  return startWriter<Producer>({
    async connect() {
      const producer = kafka.producer({ allowAutoTopicCreation: false });
      await producer.connect();
      return producer;
    },
    async write(producer, id) {
      const messages = [{ partition: id % partitions, key: String(id), value: String(id) }];
      await producer.send({ topic, acks: -1, timeout: 5_000, messages });
    },
    close: (producer) => producer.disconnect(),
    read: async () => (await readTopic(kafka, topic)).map(({ value }) => Number(value)),
    signal,
  });
}

/** A record as consumers get it. */
export interface ReadRecord {
  readonly partition: number;
  readonly offset: string;
  readonly timestamp: string;
  readonly key: string | null;
  readonly value: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** All committed records of a topic up to its present ends, by partition and offset. */
export async function readTopic(kafka: Kafka, name: string): Promise<ReadRecord[]> {
  const admin = kafka.admin();
  await admin.connect();
  const ends = await admin.fetchTopicOffsets(name);
  await admin.disconnect();
  const groupId = `readers-${crypto.randomUUID()}`;
  const consumer = kafka.consumer({ groupId, maxWaitTimeInMs: 100 });
  const records: ReadRecord[] = [];
  const remaining = new Map(ends.flatMap(({ partition, low, high }) => (low === high ? [] : [[partition, high]])));
  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [name], fromBeginning: true });
    if (remaining.size > 0)
      await new Promise<void>((resolve, reject) => {
        consumer.on("consumer.crash", ({ payload }) => (payload.restart ? undefined : reject(payload.error)));
        // Batches also end behind markers of transactions, which are no messages.
        const eachBatch = async ({ batch }: EachBatchPayload) => {
          for (const { offset, timestamp, key, value, headers = {} } of batch.messages)
            records.push({
              partition: batch.partition,
              offset,
              timestamp,
              key: key?.toString() ?? null,
              value: value?.toString() ?? null,
              headers: Object.fromEntries(Object.entries(headers).map(([header, text]) => [header, String(text)])),
            });
          const end = remaining.get(batch.partition);
          if (end !== undefined && BigInt(batch.lastOffset()) + 1n >= BigInt(end)) remaining.delete(batch.partition);
          if (remaining.size === 0) resolve();
        };
        consumer.run({ autoCommit: false, eachBatch }).catch(reject);
      });
  } finally {
    await consumer.disconnect();
  }
  return records.toSorted((a, b) => a.partition - b.partition || Number(BigInt(a.offset) - BigInt(b.offset)));
}
