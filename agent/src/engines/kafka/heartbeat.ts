import { randomUUID } from "node:crypto";
import { ownNumber, platform } from "./layout.ts";
import type { Instance } from "../engine-driver.ts";
import { createTopics, fetch, produce } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { errorCodes, KafkaRefusal, requireSuccess } from "./protocol/protocol-error.ts";
import { singleRecord } from "./protocol/record-batch.ts";
import { alterSettings, describeSettings, resourceTypes, settingSources } from "./stored-settings.ts";

/** Topic of the platform's own writes. It exists once the first settings of the service are in the engine. */
export const heartbeatTopic = `${platform}.heartbeat`;

const timeoutMs = 10_000;
const partition = 0;
/**
 * Settings of the topic itself, so that no parameter of the service refuses or changes the platform's records. Those
 * have no key, which compaction requires, are read back as they were written, and may be late, which a limit of the age
 * of records refuses.
 */
const configs: Readonly<Record<string, string>> = {
  "cleanup.policy": "delete",
  "compression.type": "producer",
  "message.timestamp.type": "LogAppendTime",
  "retention.ms": "3600000",
  "segment.bytes": "1048576",
  "retention.bytes": "1048576",
};

export async function createHeartbeatTopic(session: Connection, replicationFactor: number): Promise<void> {
  await requestTopic(session, replicationFactor, false);
}

/** Sets what the topic lacks: earlier agents created it with fewer settings. */
export async function configureHeartbeatTopic(session: Connection): Promise<void> {
  const topic = { type: resourceTypes.topic, name: heartbeatTopic };
  const present = await describeSettings(session, topic, Object.keys(configs));
  const missing = Object.entries(configs).filter(
    ([name, value]) => present.get(name)?.value !== value || present.get(name)?.source !== settingSources.topic,
  );
  await alterSettings(session, topic, missing);
}

/** True if the topic exists. The answer is the controller's own: a broker's copy of the metadata may be older. */
export function hasHeartbeatTopic(session: Connection): Promise<boolean> {
  return requestTopic(session, 1, true);
}

/** Returns whether the topic existed. */
async function requestTopic(session: Connection, replicationFactor: number, validateOnly: boolean): Promise<boolean> {
  const topic = {
    name: heartbeatTopic,
    partitions: 1,
    replicationFactor,
    assignments: [],
    configs: Object.entries(configs).map(([name, value]) => ({ name, value })),
  };
  const [result] = (await session.call(createTopics, { topics: [topic], timeoutMs, validateOnly })).topics;
  if (result?.errorCode === errorCodes.topicAlreadyExists) return true;
  if (result !== undefined) requireSuccess("CreateTopics", result);
  return false;
}

/**
 * Writes a record that all in-sync replicas acknowledge, and reads it back. A broker that does not lead the topic has
 * nothing to write, and throws nothing.
 */
export async function probe(instance: Instance, session: Connection, limitMs: number): Promise<void> {
  const value = Buffer.from(`${ownNumber(instance)} ${randomUUID()}`);
  const records = singleRecord(value, Date.now());
  const written = await session.call(produce, {
    transactionalId: null,
    acks: -1,
    timeoutMs: limitMs,
    topics: [{ name: heartbeatTopic, partitions: [{ index: partition, records }] }],
  });
  const result = written.topics[0]?.partitions[0];
  if (result === undefined) throw new Error("the broker did not answer the write");
  if (result.errorCode === errorCodes.notLeader) return;
  requireSuccess("Produce", result);
  const position = {
    index: partition,
    leaderEpoch: -1,
    fetchOffset: result.baseOffset,
    lastFetchedEpoch: -1,
    startOffset: -1,
    maxBytes: 4_096,
  };
  const read = await session.call(fetch, {
    replicaId: -1,
    maxWaitMs: limitMs,
    minBytes: 1,
    maxBytes: 4_096,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{ name: heartbeatTopic, partitions: [position] }],
    forgotten: [],
    rackId: "",
  });
  const found = read.topics[0]?.partitions[0];
  if (found === undefined) throw new KafkaRefusal("Fetch", read.errorCode, null);
  requireSuccess("Fetch", found);
  if (found.records?.includes(value) !== true) throw new Error("a written record could not be read back");
}
