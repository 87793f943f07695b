import { type ParameterLimits as Limits, type Parameter, parameterOf } from "./parameter.ts";

/** As parameterOf, with the two words that valkey has for a boolean. */
function row(...[name, type, fallback, limits, description]: Parameters<typeof parameterOf>): Parameter {
  const values = type === "boolean" ? { values: ["yes", "no"] } : {};
  return parameterOf(name, type, fallback, { ...limits, ...values }, description);
}

const int = 2_147_483_647;
const from = (minimum: number, maximum = int): Limits => ({ minimum, maximum });
const bytes = (minimum: number, maximum: number): Limits => ({ unit: "byte", minimum, maximum });
/** A script that is on has the engine answer from here on: within the time in which the agent waits for an answer. */
const longestSilenceMs = 1_000;
const policies = [
  "noeviction",
  "allkeys-lru",
  "allkeys-lfu",
  "allkeys-random",
  "volatile-lru",
  "volatile-lfu",
  "volatile-random",
  "volatile-ttl",
];

// biome-ignore format: a table, aligned so that it reads as one
export const valkeyParameters: readonly Parameter[] = [
  row("maxmemory-policy",            "enum",    "noeviction", { values: policies }, "What goes when memory is full; noeviction refuses writes"),
  row("maxmemory-samples",           "integer", "5",      from(1, 64),       "Keys that are looked at to find one to evict"),
  row("maxmemory-eviction-tenacity", "integer", "10",     from(0, 100),      "How hard eviction works"),
  row("notify-keyspace-events",      "text",    "",       { pattern: /^[KEg$lshzxetdmnA]*$/ }, "Letters of the events that are published, such as KEA; empty for none"),
  row("timeout",                     "integer", "0",      from(0),           "Seconds after which an idle client is closed; 0 never"),
  row("tcp-keepalive",               "integer", "300",    from(0),           "Seconds between probes of idle clients; 0 never"),
  row("io-threads",                  "integer", null,     { ...from(1, 128), needsRestart: true }, "Threads that read and write clients"),
  row("appendfsync",                 "enum",    "everysec", { values: ["always", "everysec", "no"] }, "When the append-only file is flushed to disk"),
  row("no-appendfsync-on-rewrite",   "boolean", "no",     {},                "Holds flushes back while the file is rewritten"),
  row("auto-aof-rewrite-percentage", "integer", "100",    from(0),           "Growth in percent that rewrites the append-only file; 0 never"),
  row("auto-aof-rewrite-min-size",   "bytes",   "67108864", bytes(1_048_576, 1_099_511_627_776), "Least size of the append-only file that is rewritten"),
  row("activedefrag",                "boolean", "no",     {},                "Moves data to give fragmented memory back"),
  row("active-expire-effort",        "integer", "1",      from(1, 10),       "How hard expired keys are looked for"),
  row("lazyfree-lazy-eviction",      "boolean", "yes",    {},                "Frees evicted values in the background"),
  row("lazyfree-lazy-expire",        "boolean", "yes",    {},                "Frees expired values in the background"),
  row("lazyfree-lazy-server-del",    "boolean", "yes",    {},                "Frees replaced values in the background"),
  row("lazyfree-lazy-user-del",      "boolean", "yes",    {},                "DEL frees in the background"),
  row("lazyfree-lazy-user-flush",    "boolean", "no",     {},                "FLUSHALL and FLUSHDB free in the background"),
  row("lfu-log-factor",              "integer", "10",     from(0),           "How slowly the counter of uses grows"),
  row("lfu-decay-time",              "integer", "1",      from(0),           "Minutes after which the counter of uses shrinks"),
  row("hash-max-listpack-entries",   "integer", "512",    from(0),           "Fields up to which a hash is kept compact"),
  row("hash-max-listpack-value",     "bytes",   "64",     bytes(0, int),     "Bytes of a value up to which a hash is kept compact"),
  row("list-max-listpack-size",      "integer", "-2",     from(-5, int),     "Entries of a list's node, or -1 to -5 for 4 to 64 kB"),
  row("list-compress-depth",         "integer", "0",      from(0, int),      "Nodes at a list's ends that are not compressed; 0 compresses none"),
  row("set-max-intset-entries",      "integer", "512",    from(0),           "Numbers up to which a set is kept compact"),
  row("set-max-listpack-entries",    "integer", "128",    from(0),           "Members up to which a set is kept compact"),
  row("zset-max-listpack-entries",   "integer", "128",    from(0),           "Members up to which a sorted set is kept compact"),
  row("zset-max-listpack-value",     "bytes",   "64",     bytes(0, int),     "Bytes of a member up to which a sorted set is kept compact"),
  row("stream-node-max-bytes",       "bytes",   "4096",   bytes(0, int),     "Bytes of a stream's node"),
  row("stream-node-max-entries",     "integer", "100",    from(0),           "Entries of a stream's node"),
  row("slowlog-log-slower-than",     "integer", "10000",  from(-1),          "Microseconds from which a command is in SLOWLOG; -1 never"),
  row("slowlog-max-len",             "integer", "128",    from(0, 100_000),  "Commands that SLOWLOG keeps"),
  row("latency-monitor-threshold",   "integer", "0",      from(0),           "Milliseconds from which LATENCY notes an event; 0 never"),
  row("busy-reply-threshold",        "integer", "1000",   from(1, longestSilenceMs), "Milliseconds from which a script may be killed, and others get BUSY as an answer"),
  row("min-replicas-to-write",       "integer", "0",      from(0, 4),        "Connected replicas without which writes are refused; 0 takes them without any"),
  row("proto-max-bulk-len",          "bytes",   "536870912", bytes(1_048_576, 2_147_483_647), "Longest value in bytes"),
];

export const valkeyManaged: readonly RegExp[] = [
  /^(tls-|repl-|replica|min-replicas-max|cluster|sentinel|rdb|aof-|append(only|filename|dirname)|unixsocket|acl|enable-)/,
  /^(port|bind.*|dir|dbfilename|save|maxmemory|maxmemory-clients|maxclients|databases|requirepass|primary.*|masterauth|masteruser)$/,
  /^(logfile|loglevel|syslog.*|daemonize|pidfile|supervised|loadmodule|include|rename-command|protected-mode|user|crash.*)$/,
];
