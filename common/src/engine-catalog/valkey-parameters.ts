import { type ParameterLimits as Limits, type Parameter, parameterOf } from "./parameter.ts";

/** Calls parameterOf with Valkey's values for a boolean. */
function row(...[name, type, fallback, limits, description]: Parameters<typeof parameterOf>): Parameter {
  const values = type === "boolean" ? { values: ["yes", "no"] } : {};
  return parameterOf(name, type, fallback, { ...limits, ...values }, description);
}

const int = 2_147_483_647;
const from = (minimum: number, maximum = int): Limits => ({ minimum, maximum });
const bytes = (minimum: number, maximum: number): Limits => ({ unit: "byte", minimum, maximum });
/** Upper bound of busy-reply-threshold: the engine must respond during a script within the agent's timeout. */
const maxSilenceMs = 1_000;
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
  row("maxmemory-samples",           "integer", "5",      from(1, 64),       "Keys sampled to select one to evict"),
  row("maxmemory-eviction-tenacity", "integer", "10",     from(0, 100),      "Effort of eviction"),
  row("notify-keyspace-events",      "text",    "",       { pattern: /^[KEg$lshzxetdmnA]*$/ }, "Letters of the published events, such as KEA; empty for none"),
  row("timeout",                     "integer", "0",      from(0),           "Seconds after which an idle client is closed; 0 disables it"),
  row("tcp-keepalive",               "integer", "300",    from(0),           "Seconds between probes of idle clients; 0 disables them"),
  row("io-threads",                  "integer", null,     { ...from(1, 128), needsRestart: true }, "Threads for client I/O"),
  row("appendfsync",                 "enum",    "everysec", { values: ["always", "everysec", "no"] }, "Flush policy of the append-only file"),
  row("no-appendfsync-on-rewrite",   "boolean", "no",     {},                "Defers flushes while the file is rewritten"),
  row("auto-aof-rewrite-percentage", "integer", "100",    from(0),           "Growth in percent that triggers a rewrite of the append-only file; 0 disables it"),
  row("auto-aof-rewrite-min-size",   "bytes",   "67108864", bytes(1_048_576, 1_099_511_627_776), "Minimum size of the append-only file for a rewrite"),
  row("active-expire-effort",        "integer", "1",      from(1, 10),       "Effort of the search for expired keys"),
  row("lazyfree-lazy-eviction",      "boolean", "yes",    {},                "Frees evicted values in the background"),
  row("lazyfree-lazy-expire",        "boolean", "yes",    {},                "Frees expired values in the background"),
  row("lazyfree-lazy-server-del",    "boolean", "yes",    {},                "Frees replaced values in the background"),
  row("lazyfree-lazy-user-del",      "boolean", "yes",    {},                "DEL frees in the background"),
  row("lazyfree-lazy-user-flush",    "boolean", "no",     {},                "FLUSHALL and FLUSHDB free in the background"),
  row("lfu-log-factor",              "integer", "10",     from(0),           "Growth factor of the LFU counter; a higher value slows it down"),
  row("lfu-decay-time",              "integer", "1",      from(0),           "Minutes after which the LFU counter decreases"),
  row("hash-max-listpack-entries",   "integer", "512",    from(0),           "Maximum number of fields of a compact hash"),
  row("hash-max-listpack-value",     "bytes",   "64",     bytes(0, int),     "Maximum bytes of a value in a compact hash"),
  row("list-max-listpack-size",      "integer", "-2",     from(-5, int),     "Maximum entries of a list node, or -1 to -5 for 4 to 64 kB"),
  row("list-compress-depth",         "integer", "0",      from(0, int),      "Uncompressed nodes at each end of a list; 0 disables compression"),
  row("set-max-intset-entries",      "integer", "512",    from(0),           "Maximum number of integers of a compact set"),
  row("set-max-listpack-entries",    "integer", "128",    from(0),           "Maximum number of members of a compact set"),
  row("zset-max-listpack-entries",   "integer", "128",    from(0),           "Maximum number of members of a compact sorted set"),
  row("zset-max-listpack-value",     "bytes",   "64",     bytes(0, int),     "Maximum bytes of a member in a compact sorted set"),
  row("stream-node-max-bytes",       "bytes",   "4096",   bytes(0, int),     "Maximum bytes of a stream node"),
  row("stream-node-max-entries",     "integer", "100",    from(0),           "Maximum entries of a stream node"),
  row("slowlog-log-slower-than",     "integer", "10000",  from(-1),          "Microseconds above which a command is in SLOWLOG; -1 disables it"),
  row("slowlog-max-len",             "integer", "128",    from(0, 100_000),  "Maximum number of commands in SLOWLOG"),
  row("latency-monitor-threshold",   "integer", "0",      from(0),           "Milliseconds above which LATENCY records an event; 0 disables it"),
  row("busy-reply-threshold",        "integer", "1000",   from(1, maxSilenceMs), "Milliseconds after which a script may be killed and other clients get BUSY"),
  row("min-replicas-to-write",       "integer", "0",      from(0, 4),        "Minimum number of connected replicas for writes; 0 accepts writes without any"),
  row("proto-max-bulk-len",          "bytes",   "536870912", bytes(1_048_576, 2_147_483_647), "Maximum size of a value in bytes"),
];

export const valkeyManaged: readonly RegExp[] = [
  /^(tls-|repl-|replica|min-replicas-max|cluster|sentinel|rdb|aof-|append(only|filename|dirname)|unixsocket|acl|enable-)/,
  /^(port|bind.*|dir|dbfilename|save|maxmemory|maxmemory-clients|maxclients|databases|requirepass|primary.*|masterauth|masteruser)$/,
  /^(logfile|loglevel|syslog.*|daemonize|pidfile|supervised|loadmodule|include|rename-command|protected-mode|user|crash.*)$/,
];
