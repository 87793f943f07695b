import { operation, pattern, permission, resource } from "@holdfast/agent/engines/kafka/access.ts";
import { heartbeatTopic } from "@holdfast/agent/engines/kafka/heartbeat.ts";
import {
  alterReassignments,
  alterScramCredentials,
  createAcls,
  createPartitions,
  createTopics,
  deleteAcls,
  deleteGroups,
  deleteTopics,
  describeConfigs,
  describeLogDirs,
  describeQuorum,
  describeScramCredentials,
  fetch,
  findCoordinator,
  incrementalAlterConfigs,
  initProducerId,
  listOffsets,
  listReassignments,
  offsetCommit,
  offsetFetch,
  produce,
  unregisterBroker,
} from "@holdfast/agent/engines/kafka/protocol/apis.ts";
import {
  array,
  bool,
  bytes,
  type Codec,
  int16,
  int32,
  int64,
  int8,
  nullableArray,
  nullableString,
  string,
  struct,
  uint16,
  uuid,
} from "@holdfast/agent/engines/kafka/protocol/codec.ts";
import type { Connection } from "@holdfast/agent/engines/kafka/protocol/connection.ts";
import { singleRecord } from "@holdfast/agent/engines/kafka/protocol/record-batch.ts";

/** A call about what users must not reach, with the error code of the protocol that it gets. */
export interface Attempt {
  readonly key: number;
  readonly what: string;
  readonly code: number;
  /** Resolves with the error code of the response. */
  send(session: Connection): Promise<number | undefined>;
}

export const denied = { topic: 29, group: 30, cluster: 31, transactionalId: 53 } as const;
/** The broker issues no delegation tokens, and has no groups of the protocol `consumer`. */
const [noTokens, noConsumerProtocol] = [61, 35];
/** Names of the platform and of the engine. */
const [group, transactionalId, offsets] = ["holdfast.mine", "holdfast.mine", "__consumer_offsets"];

const timeoutMs = 5_000;
const noId = Buffer.alloc(16).toString("base64url");
const producer = { producerId: 1, epoch: 0 };
const producerFields = { producerId: int64, epoch: int16 };
const member = { generation: 1, memberId: "mine", instanceId: null };
const memberFields = { generation: int32, memberId: string, instanceId: nullableString };

/** The length of an array, whose first element follows. */
const begin: Codec<number> = { write: () => undefined, read: (from) => from.varint() };

/** A call that the driver does not need. The error code of its response is behind the fields `before`. */
function tried<T>(
  [key, version, what, code]: readonly [key: number, version: number, what: string, code: number],
  codec: Codec<T>,
  request: T,
  ...before: readonly Codec<unknown>[]
): Attempt {
  const response: Codec<number> = {
    write: () => undefined,
    read(from) {
      for (const field of before) field.read(from);
      return int16.read(from);
    },
  };
  return {
    key,
    what,
    code,
    send: (session) => session.call({ name: what, key, version, request: codec, response }, request),
  };
}

const topicRow = { name: string, partitions: array(int32) };
const aboutOffsets = [{ name: offsets, partitions: [0] }];

const foreign = {
  resourceType: resource.cluster,
  resourceName: "kafka-cluster",
  patternType: pattern.literal,
  principal: "User:reader",
  host: "*",
  operation: operation.all,
  permission: permission.allow,
};
const everyAcl = { ...foreign, principal: null, host: null, resourceName: null };

export async function createTopic(session: Connection, name: string): Promise<number | undefined> {
  const topic = { name, partitions: 1, replicationFactor: 1, assignments: [], configs: [] };
  return (await session.call(createTopics, { topics: [topic], timeoutMs, validateOnly: false })).topics[0]?.errorCode;
}

export async function writeTopic(session: Connection, name: string): Promise<number | undefined> {
  const records = singleRecord(Buffer.from("foreign"), Date.now());
  const topics = [{ name, partitions: [{ index: 0, records }] }];
  const answer = await session.call(produce, { transactionalId: null, acks: -1, timeoutMs, topics });
  return answer.topics[0]?.partitions[0]?.errorCode;
}

export async function readTopicPartition(session: Connection, name: string): Promise<number | undefined> {
  const position = { index: 0, leaderEpoch: -1, fetchOffset: 0, lastFetchedEpoch: -1, startOffset: -1 };
  const answer = await session.call(fetch, {
    replicaId: -1,
    maxWaitMs: 0,
    minBytes: 0,
    maxBytes: 1_024,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{ name, partitions: [{ ...position, maxBytes: 1_024 }] }],
    forgotten: [],
    rackId: "",
  });
  return answer.topics[0]?.partitions[0]?.errorCode;
}

async function listOffsetsOf(session: Connection, name: string): Promise<number | undefined> {
  const topics = [{ name, partitions: [{ index: 0, leaderEpoch: -1, timestamp: -1 }] }];
  const answer = await session.call(listOffsets, { replicaId: -1, isolationLevel: 0, topics });
  return answer.topics[0]?.partitions[0]?.errorCode;
}

async function commitOffset(session: Connection): Promise<number | undefined> {
  const partitions = [{ index: 0, offset: 1, leaderEpoch: -1, metadata: null }];
  const request = { group, generation: -1, memberId: "", instanceId: null, topics: [{ name: "orders", partitions }] };
  return (await session.call(offsetCommit, request)).topics[0]?.partitions[0]?.errorCode;
}

/** The address of the coordinator of a group (type 0) or of a transactional id (type 1). */
async function coordinatorOf(session: Connection, keyType: number, key: string): Promise<number | undefined> {
  return (await session.call(findCoordinator, { keyType, keys: [key] })).coordinators[0]?.errorCode;
}

async function alterConfig(session: Connection, type: number, name: string): Promise<number | undefined> {
  const configs = [{ name: "log.retention.ms", operation: 0, value: "1" }];
  const request = { resources: [{ type, name, configs }], validateOnly: false };
  return (await session.call(incrementalAlterConfigs, request)).results[0]?.errorCode;
}

/** Calls that no role may make. */
// biome-ignore format: a table
export const forbidden: readonly Attempt[] = [
  { key: 0,  what: "writing the heartbeat",           code: denied.topic,   send: (session) => writeTopic(session, heartbeatTopic) },
  { key: 0,  what: "writing offsets",                 code: denied.topic,   send: (session) => writeTopic(session, offsets) },
  { key: 1,  what: "reading the heartbeat",           code: denied.topic,   send: (session) => readTopicPartition(session, heartbeatTopic) },
  { key: 1,  what: "reading offsets",                 code: denied.topic,   send: (session) => readTopicPartition(session, offsets) },
  { key: 2,  what: "offsets of the heartbeat",        code: denied.topic,   send: (session) => listOffsetsOf(session, heartbeatTopic) },
  { key: 8,  what: "offsets of a platform group",     code: denied.group,   send: commitOffset },
  { key: 9,  what: "reading a platform group",        code: denied.group,   send: async (session) => (await session.call(offsetFetch, { groups: [{ id: group, topics: null }], requireStable: false })).groups[0]?.errorCode },
  { key: 10, what: "finding a platform group",        code: denied.group,   send: (session) => coordinatorOf(session, 0, group) },
  { key: 10, what: "finding a platform transaction",  code: denied.transactionalId, send: (session) => coordinatorOf(session, 1, transactionalId) },
  tried([11, 6, "joining a platform group", denied.group],
    struct({ group: string, sessionMs: int32, rebalanceMs: int32, memberId: string, instanceId: nullableString, type: string, protocols: array(struct({ name: string, metadata: bytes })) }),
    { group, sessionMs: 10_000, rebalanceMs: 10_000, memberId: "", instanceId: null, type: "consumer", protocols: [{ name: "range", metadata: Buffer.alloc(0) }] }, int32),
  tried([12, 4, "the heartbeat of a platform group", denied.group], struct({ group: string, ...memberFields }), { group, ...member }, int32),
  tried([13, 4, "leaving a platform group", denied.group],
    struct({ group: string, members: array(struct({ memberId: string, instanceId: nullableString })) }), { group, members: [{ memberId: "mine", instanceId: null }] }, int32),
  tried([14, 4, "synchronizing a platform group", denied.group],
    struct({ group: string, ...memberFields, assignments: array(struct({ memberId: string, assignment: bytes })) }), { group, ...member, assignments: [] }, int32),
  tried([15, 5, "describing a platform group", denied.group], struct({ groups: array(string), operations: bool }), { groups: [group], operations: false }, int32, begin),
  { key: 19, what: "creating a platform topic",       code: denied.topic,   send: (session) => createTopic(session, "holdfast.mine") },
  { key: 19, what: "creating an engine topic",        code: denied.topic,   send: (session) => createTopic(session, "__mine") },
  { key: 20, what: "deleting the heartbeat",          code: denied.topic,   send: async (session) => (await session.call(deleteTopics, { topics: [{ name: heartbeatTopic, id: noId }], timeoutMs })).results[0]?.errorCode },
  { key: 20, what: "deleting offsets",                code: denied.topic,   send: async (session) => (await session.call(deleteTopics, { topics: [{ name: offsets, id: noId }], timeoutMs })).results[0]?.errorCode },
  tried([21, 2, "deleting records of offsets", denied.topic],
    struct({ topics: array(struct({ name: string, partitions: array(struct({ index: int32, offset: int64 })) })), timeoutMs: int32 }),
    { topics: [{ name: offsets, partitions: [{ index: 0, offset: 1 }] }], timeoutMs }, int32, begin, string, begin, int32, int64),
  { key: 22, what: "a platform transactional id",     code: denied.transactionalId, send: async (session) => (await session.call(initProducerId, { transactionalId, timeoutMs, producerId: -1, producerEpoch: -1 })).errorCode },
  tried([23, 4, "leaders of the heartbeat", denied.topic],
    struct({ replicaId: int32, topics: array(struct({ name: string, partitions: array(struct({ index: int32, currentEpoch: int32, epoch: int32 })) })) }),
    { replicaId: -1, topics: [{ name: heartbeatTopic, partitions: [{ index: 0, currentEpoch: -1, epoch: 0 }] }] }, int32, begin, string, begin),
  tried([24, 3, "partitions in a platform transaction", denied.transactionalId],
    struct({ transactionalId: string, ...producerFields, topics: array(struct(topicRow)) }), { transactionalId, ...producer, topics: aboutOffsets }, int32, begin, string, begin, int32),
  tried([25, 3, "offsets in a platform transaction", denied.transactionalId],
    struct({ transactionalId: string, ...producerFields, group: string }), { transactionalId, ...producer, group }, int32),
  tried([26, 3, "ending a platform transaction", denied.transactionalId],
    struct({ transactionalId: string, ...producerFields, isCommitted: bool }), { transactionalId, ...producer, isCommitted: true }, int32),
  tried([27, 1, "ends of transactions as a broker", denied.cluster],
    struct({ markers: array(struct({ ...producerFields, isCommitted: bool, topics: array(struct(topicRow)), coordinatorEpoch: int32 })) }),
    { markers: [{ ...producer, isCommitted: true, topics: aboutOffsets, coordinatorEpoch: 1 }] }, begin, int64, begin, string, begin, int32),
  tried([28, 3, "committing in a platform transaction", denied.transactionalId],
    struct({ transactionalId: string, group: string, ...producerFields, ...memberFields, topics: array(struct({ name: string, partitions: array(struct({ index: int32, offset: int64, epoch: int32, metadata: nullableString })) })) }),
    { transactionalId, group, ...producer, ...member, topics: [{ name: "orders", partitions: [{ index: 0, offset: 1, epoch: -1, metadata: null }] }] }, int32, begin, string, begin, int32),
  { key: 30, what: "creating an ACL",                 code: denied.cluster, send: async (session) => (await session.call(createAcls, { acls: [foreign] })).results[0]?.errorCode },
  { key: 31, what: "deleting ACLs",                   code: denied.cluster, send: async (session) => (await session.call(deleteAcls, { filters: [everyAcl] })).results[0]?.errorCode },
  { key: 32, what: "settings of the heartbeat",       code: denied.topic,   send: async (session) => (await session.call(describeConfigs, { resources: [{ type: 2, name: heartbeatTopic, keys: null }], includeSynonyms: false, includeDocumentation: false })).results[0]?.errorCode },
  tried([33, 2, "replacing the broker's settings", denied.cluster],
    struct({ resources: array(struct({ type: int8, name: string, configs: array(struct({ name: string, value: nullableString })) })), validateOnly: bool }),
    { resources: [{ type: 4, name: "1", configs: [{ name: "log.retention.ms", value: "1" }] }], validateOnly: false }, int32, begin),
  tried([34, 2, "moving logs to another directory", denied.cluster],
    struct({ directories: array(struct({ path: string, topics: array(struct(topicRow)) })) }), { directories: [{ path: "/tmp", topics: aboutOffsets }] }, int32, begin, string, begin, int32),
  { key: 37, what: "partitions of the heartbeat",     code: denied.topic,   send: async (session) => (await session.call(createPartitions, { topics: [{ name: heartbeatTopic, count: 2, assignments: null }], timeoutMs, validateOnly: false })).results[0]?.errorCode },
  tried([38, 3, "creating a delegation token", noTokens],
    struct({ ownerType: nullableString, owner: nullableString, renewers: array(struct({ type: string, name: string })), maxMs: int64 }), { ownerType: null, owner: null, renewers: [], maxMs: -1 }),
  tried([39, 2, "renewing a delegation token", noTokens], struct({ hmac: bytes, periodMs: int64 }), { hmac: Buffer.from("x"), periodMs: 1 }),
  tried([40, 2, "expiring a delegation token", noTokens], struct({ hmac: bytes, periodMs: int64 }), { hmac: Buffer.from("x"), periodMs: 1 }),
  tried([41, 3, "delegation tokens", noTokens], struct({ owners: nullableArray(struct({ type: string, name: string })) }), { owners: null }),
  { key: 42, what: "deleting a platform group",       code: denied.group,   send: async (session) => (await session.call(deleteGroups, { groups: [group] })).results[0]?.errorCode },
  tried([43, 2, "electing leaders", denied.cluster], struct({ type: int8, topics: nullableArray(struct(topicRow)), timeoutMs: int32 }), { type: 0, topics: null, timeoutMs }, int32),
  { key: 44, what: "changing the broker",             code: denied.cluster, send: (session) => alterConfig(session, 4, "1") },
  { key: 44, what: "changing all brokers",            code: denied.cluster, send: (session) => alterConfig(session, 4, "") },
  { key: 44, what: "settings of offsets",             code: denied.topic,   send: (session) => alterConfig(session, 2, offsets) },
  { key: 45, what: "moving partitions",               code: denied.cluster, send: async (session) => (await session.call(alterReassignments, { timeoutMs, topics: [] })).errorCode },
  tried([49, 1, "quotas of users", denied.cluster],
    // A number of 8 bytes whose bits are 0 is 0 in both formats.
    struct({ entries: array(struct({ entity: array(struct({ type: string, name: nullableString })), operations: array(struct({ name: string, value: int64, isRemoved: bool })) })), validateOnly: bool }),
    { entries: [{ entity: [{ type: "user", name: "writer" }], operations: [{ name: "producer_byte_rate", value: 0, isRemoved: false }] }], validateOnly: false }, int32, begin),
  { key: 51, what: "changing a password",             code: denied.cluster, send: async (session) => (await session.call(alterScramCredentials, { deletions: [{ name: "writer", mechanism: 1 }], upsertions: [] })).results[0]?.errorCode },
  tried([57, 1, "changing features", denied.cluster],
    struct({ timeoutMs: int32, updates: array(struct({ feature: string, level: int16, upgradeType: int8 })), validateOnly: bool }), { timeoutMs, updates: [], validateOnly: false }, int32),
  tried([61, 0, "producers of offsets", denied.topic], struct({ topics: array(struct(topicRow)) }), { topics: aboutOffsets }, int32, begin, string, begin, int32),
  { key: 64, what: "removing a broker",               code: denied.cluster, send: async (session) => (await session.call(unregisterBroker, { brokerId: 1 })).errorCode },
  tried([65, 0, "describing a platform transaction", denied.transactionalId], struct({ ids: array(string) }), { ids: [transactionalId] }, int32, begin),
  tried([68, 0, "joining by the protocol consumer", noConsumerProtocol],
    struct({ group: string, memberId: string, epoch: int32, instanceId: nullableString, rack: nullableString, rebalanceMs: int32, topics: nullableArray(string), assignor: nullableString, partitions: nullableArray(struct({ id: uuid, partitions: array(int32) })) }),
    { group, memberId: "", epoch: 0, instanceId: null, rack: null, rebalanceMs: 10_000, topics: ["orders"], assignor: null, partitions: [] }, int32),
  tried([69, 0, "groups of the protocol consumer", noConsumerProtocol], struct({ groups: array(string), operations: bool }), { groups: [group], operations: false }, int32, begin),
  tried([80, 0, "adding a voter", denied.cluster],
    struct({ clusterId: nullableString, timeoutMs: int32, voterId: int32, directoryId: uuid, listeners: array(struct({ name: string, host: string, port: uint16 })) }),
    { clusterId: null, timeoutMs, voterId: 9, directoryId: noId, listeners: [] }, int32),
  tried([81, 0, "removing a voter", denied.cluster], struct({ clusterId: nullableString, voterId: int32, directoryId: uuid }), { clusterId: null, voterId: 1, directoryId: noId }, int32),
];

/** Calls that only admins may make: they read, and have no names of the platform in their requests. */
// biome-ignore format: a table
export const forAdmins: readonly Omit<Attempt, "code">[] = [
  { key: 32, what: "settings of the broker",   send: async (session) => (await session.call(describeConfigs, { resources: [{ type: 4, name: "1", keys: ["log.retention.ms"] }], includeSynonyms: false, includeDocumentation: false })).results[0]?.errorCode },
  { key: 35, what: "sizes of partitions",      send: async (session) => (await session.call(describeLogDirs, { topics: [] })).errorCode },
  { key: 46, what: "moves of partitions",      send: async (session) => (await session.call(listReassignments, { timeoutMs, topics: null })).errorCode },
  tried([48, 1, "quotas", 0],
    struct({ components: array(struct({ type: string, match: int8, name: nullableString })), isStrict: bool }), { components: [], isStrict: false }, int32),
  // With null in place of no names, Kafka 3.9 does not answer a user without the right.
  { key: 50, what: "names of users",           send: async (session) => (await session.call(describeScramCredentials, { users: [] })).errorCode },
  { key: 55, what: "members of the quorum",    send: async (session) => (await session.call(describeQuorum, { topics: [{ name: "__cluster_metadata", partitions: [{ index: 0 }] }] })).errorCode },
  tried([74, 0, "settings of metrics", 0], struct({}), {}, int32),
];

/** Other calls that brokers answer, with the reason for which no attempt is in the tables. */
export const harmless: ReadonlyMap<number, string> = new Map([
  [3, "lists the topics that the user may describe"],
  [16, "lists the groups that the user may describe"],
  [17, "begins a sign-in"],
  [18, "lists the calls"],
  [29, "lists ACLs to admins"],
  [36, "continues a sign-in"],
  [47, "deletes offsets by the rights of the calls that delete groups and read topics; its encoding is an older one"],
  [60, "lists the brokers, as each client must know them"],
  [66, "lists the transactions that the user may describe"],
  [71, "answered only by brokers with a receiver of client metrics"],
  [72, "answered only by brokers with a receiver of client metrics"],
  [75, "lists the topics that the user may describe"],
]);

/** Keys of the calls that the listener answers. */
export async function answeredKeys(session: Connection): Promise<number[]> {
  const calls = array(struct({ key: int16, min: int16, max: int16 }));
  const response: Codec<readonly { readonly key: number }[]> = {
    write: () => undefined,
    read(from) {
      // The header of this response alone has no tags, so the first byte of the error code was read as their number.
      int8.read(from);
      return calls.read(from);
    },
  };
  const request = struct({ name: string, version: string });
  const api = { name: "ApiVersions", key: 18, version: 3, request, response };
  return (await session.call(api, { name: "holdfast", version: "1" })).map(({ key }) => key);
}

/** A call of any key without contents. Rejects if the broker ends the connection. */
export function sendEmpty(session: Connection, key: number): Promise<unknown> {
  const nothing = struct({});
  return session.call({ name: String(key), key, version: 0, request: nothing, response: nothing }, {});
}
