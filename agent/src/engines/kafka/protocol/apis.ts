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
  nullableBytes,
  nullableString,
  string,
  struct,
  uint16,
  uuid,
} from "./codec.ts";

/** A call of the protocol in one version, which Kafka 3.9 supports. */
export interface Api<Request, Response> {
  readonly name: string;
  readonly key: number;
  readonly version: number;
  readonly request: Codec<Request>;
  readonly response: Codec<Response>;
}

function api<Request, Response>(
  name: string,
  [key, version]: readonly [number, number],
  request: Codec<Request>,
  response: Codec<Response>,
): Api<Request, Response> {
  return { name, key, version, request, response };
}

const throttleMs = int32;
const errorCode = int16;
const errorMessage = nullableString;
const names = array(string);
const topicName = string;

export const produce = api(
  "Produce",
  [0, 9],
  struct({
    transactionalId: nullableString,
    acks: int16,
    timeoutMs: int32,
    topics: array(struct({ name: topicName, partitions: array(struct({ index: int32, records: nullableBytes })) })),
  }),
  struct({
    topics: array(
      struct({
        name: topicName,
        partitions: array(
          struct({
            index: int32,
            errorCode,
            baseOffset: int64,
            appendTimeMs: int64,
            startOffset: int64,
            recordErrors: array(struct({ index: int32, message: nullableString })),
            errorMessage,
          }),
        ),
      }),
    ),
    throttleMs,
  }),
);

/** Reads records of topics that are named by one field: in some versions their name, in later ones their id. */
function fetchOf<Topic extends Readonly<Record<string, Codec<string>>>>(version: number, topic: Topic) {
  return api(
    "Fetch",
    [1, version],
    struct({
      replicaId: int32,
      maxWaitMs: int32,
      minBytes: int32,
      maxBytes: int32,
      isolationLevel: int8,
      sessionId: int32,
      sessionEpoch: int32,
      topics: array(
        struct({
          ...topic,
          partitions: array(
            struct({
              index: int32,
              leaderEpoch: int32,
              fetchOffset: int64,
              lastFetchedEpoch: int32,
              startOffset: int64,
              maxBytes: int32,
            }),
          ),
        }),
      ),
      forgotten: array(struct({ ...topic, partitions: array(int32) })),
      rackId: string,
    }),
    struct({
      throttleMs,
      errorCode,
      sessionId: int32,
      topics: array(
        struct({
          ...topic,
          partitions: array(
            struct({
              index: int32,
              errorCode,
              highWatermark: int64,
              lastStableOffset: int64,
              startOffset: int64,
              aborted: nullableArray(struct({ producerId: int64, firstOffset: int64 })),
              preferredReplica: int32,
              records: nullableBytes,
            }),
          ),
        }),
      ),
    }),
  );
}

export const fetch = fetchOf(12, { name: topicName });
/** A topic that is deleted and created again has another id. */
export const fetchById = fetchOf(13, { id: uuid });

export const listOffsets = api(
  "ListOffsets",
  [2, 7],
  struct({
    replicaId: int32,
    isolationLevel: int8,
    topics: array(
      struct({
        name: topicName,
        partitions: array(struct({ index: int32, leaderEpoch: int32, timestamp: int64 })),
      }),
    ),
  }),
  struct({
    throttleMs,
    topics: array(
      struct({
        name: topicName,
        partitions: array(struct({ index: int32, errorCode, timestamp: int64, offset: int64, leaderEpoch: int32 })),
      }),
    ),
  }),
);

export const metadata = api(
  "Metadata",
  [3, 12],
  struct({
    topics: nullableArray(struct({ id: uuid, name: nullableString })),
    allowAutoCreation: bool,
    includeAuthorizedOperations: bool,
  }),
  struct({
    throttleMs,
    brokers: array(struct({ id: int32, host: string, port: int32, rack: nullableString })),
    clusterId: nullableString,
    controllerId: int32,
    topics: array(
      struct({
        errorCode,
        name: nullableString,
        id: uuid,
        isInternal: bool,
        partitions: array(
          struct({
            errorCode,
            index: int32,
            leader: int32,
            leaderEpoch: int32,
            replicas: array(int32),
            inSync: array(int32),
            offline: array(int32),
          }),
        ),
        authorizedOperations: int32,
      }),
    ),
  }),
);

export const offsetCommit = api(
  "OffsetCommit",
  [8, 8],
  struct({
    group: string,
    generation: int32,
    memberId: string,
    instanceId: nullableString,
    topics: array(
      struct({
        name: topicName,
        partitions: array(struct({ index: int32, offset: int64, leaderEpoch: int32, metadata: nullableString })),
      }),
    ),
  }),
  struct({
    throttleMs,
    topics: array(struct({ name: topicName, partitions: array(struct({ index: int32, errorCode })) })),
  }),
);

export const offsetFetch = api(
  "OffsetFetch",
  [9, 8],
  struct({
    groups: array(struct({ id: string, topics: nullableArray(struct({ name: topicName, partitions: array(int32) })) })),
    requireStable: bool,
  }),
  struct({
    throttleMs,
    groups: array(
      struct({
        id: string,
        topics: array(
          struct({
            name: topicName,
            partitions: array(
              struct({ index: int32, offset: int64, leaderEpoch: int32, metadata: nullableString, errorCode }),
            ),
          }),
        ),
        errorCode,
      }),
    ),
  }),
);

export const findCoordinator = api(
  "FindCoordinator",
  [10, 4],
  struct({ keyType: int8, keys: names }),
  struct({
    throttleMs,
    coordinators: array(struct({ key: string, nodeId: int32, host: string, port: int32, errorCode, errorMessage })),
  }),
);

export const listGroups = api(
  "ListGroups",
  [16, 4],
  struct({ states: names }),
  struct({
    throttleMs,
    errorCode,
    groups: array(struct({ id: string, protocolType: string, state: string })),
  }),
);

/** Not flexible: its strings have a length of 2 bytes, so its body is written by hand. */
export const saslHandshakeKey = 17;

export const createTopics = api(
  "CreateTopics",
  [19, 7],
  struct({
    topics: array(
      struct({
        name: topicName,
        partitions: int32,
        replicationFactor: int16,
        assignments: array(struct({ index: int32, brokers: array(int32) })),
        configs: array(struct({ name: string, value: nullableString })),
      }),
    ),
    timeoutMs: int32,
    validateOnly: bool,
  }),
  struct({
    throttleMs,
    topics: array(
      struct({
        name: topicName,
        id: uuid,
        errorCode,
        errorMessage,
        partitions: int32,
        replicationFactor: int16,
        configs: nullableArray(
          struct({ name: string, value: nullableString, readOnly: bool, source: int8, isSensitive: bool }),
        ),
      }),
    ),
  }),
);

export const deleteTopics = api(
  "DeleteTopics",
  [20, 6],
  struct({ topics: array(struct({ name: nullableString, id: uuid })), timeoutMs: int32 }),
  struct({
    throttleMs,
    results: array(struct({ name: nullableString, id: uuid, errorCode, errorMessage })),
  }),
);

const aclBinding = {
  resourceType: int8,
  resourceName: string,
  patternType: int8,
  principal: string,
  host: string,
  operation: int8,
  permission: int8,
};

const aclFilter = {
  resourceType: int8,
  resourceName: nullableString,
  patternType: int8,
  principal: nullableString,
  host: nullableString,
  operation: int8,
  permission: int8,
};

export const initProducerId = api(
  "InitProducerId",
  [22, 4],
  struct({ transactionalId: nullableString, timeoutMs: int32, producerId: int64, producerEpoch: int16 }),
  struct({ throttleMs, errorCode, producerId: int64, producerEpoch: int16 }),
);

export const describeAcls = api(
  "DescribeAcls",
  [29, 3],
  struct(aclFilter),
  struct({
    throttleMs,
    errorCode,
    errorMessage,
    resources: array(
      struct({
        resourceType: int8,
        resourceName: string,
        patternType: int8,
        acls: array(struct({ principal: string, host: string, operation: int8, permission: int8 })),
      }),
    ),
  }),
);

export const createAcls = api(
  "CreateAcls",
  [30, 3],
  struct({ acls: array(struct(aclBinding)) }),
  struct({ throttleMs, results: array(struct({ errorCode, errorMessage })) }),
);

export const deleteAcls = api(
  "DeleteAcls",
  [31, 3],
  struct({ filters: array(struct(aclFilter)) }),
  struct({
    throttleMs,
    results: array(
      struct({ errorCode, errorMessage, matching: array(struct({ errorCode, errorMessage, ...aclBinding })) }),
    ),
  }),
);

export const describeConfigs = api(
  "DescribeConfigs",
  [32, 4],
  struct({
    resources: array(struct({ type: int8, name: string, keys: nullableArray(string) })),
    includeSynonyms: bool,
    includeDocumentation: bool,
  }),
  struct({
    throttleMs,
    results: array(
      struct({
        errorCode,
        errorMessage,
        type: int8,
        name: string,
        configs: array(
          struct({
            name: string,
            value: nullableString,
            readOnly: bool,
            source: int8,
            isSensitive: bool,
            synonyms: array(struct({ name: string, value: nullableString, source: int8 })),
            type: int8,
            documentation: nullableString,
          }),
        ),
      }),
    ),
  }),
);

export const describeLogDirs = api(
  "DescribeLogDirs",
  [35, 4],
  struct({ topics: nullableArray(struct({ name: topicName, partitions: array(int32) })) }),
  struct({
    throttleMs,
    errorCode,
    directories: array(
      struct({
        errorCode,
        path: string,
        topics: array(
          struct({
            name: topicName,
            partitions: array(struct({ index: int32, sizeBytes: int64, offsetLag: int64, isFuture: bool })),
          }),
        ),
        totalBytes: int64,
        usableBytes: int64,
      }),
    ),
  }),
);

export const saslAuthenticate = api(
  "SaslAuthenticate",
  [36, 2],
  struct({ bytes }),
  struct({ errorCode, errorMessage, bytes, sessionLifetimeMs: int64 }),
);

export const createPartitions = api(
  "CreatePartitions",
  [37, 3],
  struct({
    topics: array(
      struct({ name: topicName, count: int32, assignments: nullableArray(struct({ brokers: array(int32) })) }),
    ),
    timeoutMs: int32,
    validateOnly: bool,
  }),
  struct({ throttleMs, results: array(struct({ name: topicName, errorCode, errorMessage })) }),
);

export const deleteGroups = api(
  "DeleteGroups",
  [42, 2],
  struct({ groups: names }),
  struct({ throttleMs, results: array(struct({ group: string, errorCode })) }),
);

export const incrementalAlterConfigs = api(
  "IncrementalAlterConfigs",
  [44, 1],
  struct({
    resources: array(
      struct({
        type: int8,
        name: string,
        configs: array(struct({ name: string, operation: int8, value: nullableString })),
      }),
    ),
    validateOnly: bool,
  }),
  struct({
    throttleMs,
    results: array(struct({ errorCode, errorMessage, type: int8, name: string })),
  }),
);

export const alterReassignments = api(
  "AlterPartitionReassignments",
  [45, 0],
  struct({
    timeoutMs: int32,
    topics: array(
      struct({ name: topicName, partitions: array(struct({ index: int32, replicas: nullableArray(int32) })) }),
    ),
  }),
  struct({
    throttleMs,
    errorCode,
    errorMessage,
    topics: array(struct({ name: topicName, partitions: array(struct({ index: int32, errorCode, errorMessage })) })),
  }),
);

export const listReassignments = api(
  "ListPartitionReassignments",
  [46, 0],
  struct({
    timeoutMs: int32,
    topics: nullableArray(struct({ name: topicName, partitions: array(int32) })),
  }),
  struct({
    throttleMs,
    errorCode,
    errorMessage,
    topics: array(
      struct({
        name: topicName,
        partitions: array(
          struct({ index: int32, replicas: array(int32), adding: array(int32), removing: array(int32) }),
        ),
      }),
    ),
  }),
);

export const describeScramCredentials = api(
  "DescribeUserScramCredentials",
  [50, 0],
  struct({ users: nullableArray(struct({ name: string })) }),
  struct({
    throttleMs,
    errorCode,
    errorMessage,
    results: array(
      struct({
        user: string,
        errorCode,
        errorMessage,
        credentials: array(struct({ mechanism: int8, iterations: int32 })),
      }),
    ),
  }),
);

export const alterScramCredentials = api(
  "AlterUserScramCredentials",
  [51, 0],
  struct({
    deletions: array(struct({ name: string, mechanism: int8 })),
    upsertions: array(struct({ name: string, mechanism: int8, iterations: int32, salt: bytes, saltedPassword: bytes })),
  }),
  struct({ throttleMs, results: array(struct({ user: string, errorCode, errorMessage })) }),
);

export const describeQuorum = api(
  "DescribeQuorum",
  [55, 2],
  struct({ topics: array(struct({ name: topicName, partitions: array(struct({ index: int32 })) })) }),
  struct({
    errorCode,
    errorMessage,
    topics: array(
      struct({
        name: topicName,
        partitions: array(
          struct({
            index: int32,
            errorCode,
            errorMessage,
            leader: int32,
            leaderEpoch: int32,
            highWatermark: int64,
            voters: array(quorumMember()),
            observers: array(quorumMember()),
          }),
        ),
      }),
    ),
    nodes: array(struct({ id: int32, listeners: array(struct({ name: string, host: string, port: uint16 })) })),
  }),
);

export const unregisterBroker = api(
  "UnregisterBroker",
  [64, 0],
  struct({ brokerId: int32 }),
  struct({ throttleMs, errorCode, errorMessage }),
);

export const addVoter = api(
  "AddRaftVoter",
  [80, 0],
  struct({
    clusterId: nullableString,
    timeoutMs: int32,
    voterId: int32,
    directoryId: uuid,
    listeners: array(struct({ name: string, host: string, port: uint16 })),
  }),
  struct({ throttleMs, errorCode, errorMessage }),
);

export const removeVoter = api(
  "RemoveRaftVoter",
  [81, 0],
  struct({ clusterId: nullableString, voterId: int32, directoryId: uuid }),
  struct({ throttleMs, errorCode, errorMessage }),
);

function quorumMember() {
  return struct({
    id: int32,
    directoryId: uuid,
    endOffset: int64,
    lastFetchMs: int64,
    lastCaughtUpMs: int64,
  });
}
