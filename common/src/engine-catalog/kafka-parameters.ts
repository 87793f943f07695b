import { type ParameterLimits as Limits, type Parameter, parameterOf } from "./parameter.ts";

const int = 2_147_483_647;
const day = 86_400_000;
const mib = 1024 ** 2;
/** A backup reads each batch as a whole. No client sends a larger one, since requests are limited to this, too. */
const maxBatch = 64 * mib;
const from = (minimum: number, maximum = int): Limits => ({ minimum, maximum });
const bytes = (minimum: number, maximum = int): Limits => ({ unit: "byte", minimum, maximum });
/** Read when the broker starts. */
const fixed = (limits: Limits): Limits => ({ ...limits, needsRestart: true });
/** Times in Kafka are bare numbers, and -1 stands for unlimited. */
const forever = Number.MAX_SAFE_INTEGER;
/** -1 stands for unlimited, and 0 is refused. */
const unlimited = (maximum: number): Limits => ({ minimum: -1, minimumEnabled: 1, maximum });
const codecs = ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"];
const policies = ["delete", "compact", "compact,delete"];

/** A parameter with Kafka's values for a boolean. */
function row(...[name, type, fallback, limits, description]: Parameters<typeof parameterOf>): Parameter {
  const values = type === "boolean" ? { values: ["true", "false"] } : {};
  return parameterOf(name, type, fallback, { ...limits, ...values }, description);
}

// biome-ignore format: a table, aligned so that it reads as one
export const kafkaParameters: readonly Parameter[] = [
  row("auto.create.topics.enable",                     "boolean", "true",      fixed({}),                 "Creates a topic when an admin writes to it first"),
  row("num.partitions",                                "integer", "1",         fixed(from(1, 1_000)),     "Partitions of a topic that is created without a number"),
  row("delete.topic.enable",                           "boolean", "true",      fixed({}),                 "Topics can be deleted"),
  row("min.insync.replicas",                           "integer", null,        from(1, 5),                "In-sync replicas without which a write with acks=all is refused; by default 2 from three nodes on, else 1"),
  row("unclean.leader.election.enable",                "boolean", "false",     {},                        "A replica that lacks acknowledged messages may become the leader"),
  row("compression.type",                              "enum",    "producer",  { values: codecs },        "Compression of stored messages; producer leaves theirs"),
  row("message.max.bytes",                             "bytes",   "1048588",   bytes(1_024, maxBatch),    "Maximum size of a batch of messages"),
  row("fetch.max.bytes",                               "bytes",   "57671680",  fixed(bytes(1_024, 1_073_741_824)), "Maximum bytes of an answer to a consumer"),
  row("log.retention.ms",                              "integer", "604800000", unlimited(forever),         "Milliseconds after which messages are deleted; -1 retains them"),
  row("log.retention.bytes",                           "integer", "-1",        from(-1, forever),         "Bytes of a partition above which its oldest messages are deleted; -1 for unlimited"),
  row("log.retention.check.interval.ms",               "integer", "300000",    fixed(from(1_000, day)),   "Milliseconds between searches for messages to delete"),
  row("log.cleanup.policy",                            "enum",    "delete",    { values: policies },      "Deletes old messages, or retains the last one of each key"),
  row("log.segment.bytes",                             "bytes",   "1073741824", bytes(mib, int),          "Size at which a new segment file begins"),
  row("log.roll.ms",                                   "integer", "604800000", from(60_000, forever),     "Milliseconds after which a new segment file begins"),
  row("log.roll.jitter.ms",                            "integer", "0",         from(0, forever),          "Random part by which segments begin earlier, in milliseconds"),
  row("log.segment.delete.delay.ms",                   "integer", "60000",     from(0, day),              "Milliseconds until the files of a deleted segment are removed"),
  row("log.index.interval.bytes",                      "bytes",   "4096",      bytes(0),                  "Bytes of messages between entries of the index"),
  row("log.index.size.max.bytes",                      "bytes",   "10485760",  bytes(4_096, 134_217_728), "Maximum size of an index file"),
  row("log.flush.interval.messages",                   "integer", String(forever), from(1, forever), "Messages of a partition after which it is flushed to the disk"),
  row("log.message.timestamp.type",                    "enum",    "CreateTime", { values: ["CreateTime", "LogAppendTime"] }, "The time of a message: that of its producer, or of its arrival"),
  row("log.message.timestamp.before.max.ms",           "integer", String(forever), from(60_000, forever), "Milliseconds by which a message's time may be in the past"),
  row("log.message.timestamp.after.max.ms",            "integer", String(forever), from(60_000, forever), "Milliseconds by which a message's time may be in the future"),
  row("log.cleaner.threads",                           "integer", "1",         from(1, 8),                "Threads that compact partitions"),
  row("log.cleaner.dedupe.buffer.size",                "bytes",   "33554432",  bytes(16 * mib, 1_073_741_824), "Memory for the keys of compaction, over all threads"),
  row("log.cleaner.min.cleanable.ratio",               "real",    "0.5",       from(0, 1),                "Share of a partition that is new before it is compacted"),
  row("log.cleaner.delete.retention.ms",               "integer", "86400000",  from(0, forever),          "Milliseconds for which deletions of compacted topics remain visible"),
  row("log.cleaner.min.compaction.lag.ms",             "integer", "0",         from(0, forever),          "Milliseconds before a message may be compacted"),
  row("log.cleaner.max.compaction.lag.ms",             "integer", String(forever), from(1, forever), "Milliseconds after which a message is compacted at the latest"),
  row("num.io.threads",                                "integer", null,        from(1, 64),               "Threads that process requests"),
  row("num.network.threads",                           "integer", null,        from(1, 32),               "Threads that receive and send requests"),
  row("background.threads",                            "integer", "10",        from(1, 32),               "Threads for housekeeping"),
  row("num.replica.fetchers",                          "integer", "1",         from(1, 16),               "Threads that copy messages from each other broker"),
  row("num.recovery.threads.per.data.dir",             "integer", "1",         from(1, 16),               "Threads that recover and close logs"),
  row("queued.max.requests",                           "integer", "500",       fixed(from(10, 10_000)),   "Requests that wait before no more are read"),
  row("socket.request.max.bytes",                      "bytes",   String(maxBatch), fixed(bytes(mib, maxBatch)), "Maximum size of a request, and so of a batch of messages"),
  row("connections.max.idle.ms",                       "integer", "600000",    fixed(from(10_000, day)),  "Milliseconds after which an idle connection is closed"),
  row("replica.lag.time.max.ms",                       "integer", "30000",     fixed(from(5_000, 600_000)), "Milliseconds after which a replica that lags is out of sync"),
  row("offsets.retention.minutes",                     "integer", "10080",     fixed(from(1)),            "Minutes for which the offsets of an empty group are stored"),
  row("offset.metadata.max.bytes",                     "bytes",   "4096",      fixed(bytes(0, mib)),      "Maximum size of the text with a committed offset"),
  row("group.initial.rebalance.delay.ms",              "integer", "3000",      fixed(from(0, 60_000)),    "Milliseconds for which an empty group waits for further members"),
  row("group.min.session.timeout.ms",                  "integer", "6000",      fixed(from(1_000)),        "Shortest session timeout of a consumer"),
  row("group.max.session.timeout.ms",                  "integer", "1800000",   fixed(from(1_000)),        "Longest session timeout of a consumer"),
  row("group.max.size",                                "integer", "2147483647", fixed(from(1)),           "Members of a consumer group"),
  row("max.incremental.fetch.session.cache.slots",     "integer", "1000",      fixed(from(0, 100_000)),   "Consumers whose fetches are incremental"),
  row("transaction.max.timeout.ms",                    "integer", "900000",    fixed(from(1_000, day)),   "Longest timeout of a transaction"),
  row("transactional.id.expiration.ms",                "integer", "604800000", fixed(from(60_000)),       "Milliseconds after which an unused transactional id expires"),
  row("producer.id.expiration.ms",                     "integer", "86400000",  from(1_000),               "Milliseconds after which an idle idempotent producer expires"),
  row("transaction.partition.verification.enable",     "boolean", "true",      {},                        "Checks that a partition belongs to a transaction before it is written"),
];

/** Settings of every broker beside the parameters. */
export const kafkaManagedSettings: Readonly<Record<string, string>> = {
  "auto.leader.rebalance.enable": "true",
  "controlled.shutdown.enable": "true",
  "group.coordinator.rebalance.protocols": "classic",
};

export const kafkaManaged: readonly RegExp[] = [
  /^(ssl|sasl|listener|security|authorizer|principal|delegation|password|controller|process|broker|node|metadata|zookeeper|remote|kafka|metric|auto\.leader|controlled|replica\.(?!lag)|inter\.broker|early\.start)\b/,
  /^(listeners|advertised\.listeners|log\.dirs?|super\.users|allow\.everyone.*|config\.providers|default\.replication\.factor)$/,
  /^(offsets\.topic|transaction\.state\.log|connections\.max\.reauth|max\.connections|max\.connection\.creation)/,
];
