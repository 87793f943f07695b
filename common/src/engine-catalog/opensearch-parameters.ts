import { type ParameterLimits as Limits, type Parameter, parameterOf } from "./parameter.ts";

const int = 2_147_483_647;
const from = (minimum: number, maximum = int): Limits => ({ minimum, maximum });
/** Read when a member starts. */
const fixed = (limits: Limits): Limits => ({ ...limits, needsRestart: true });
const percent: Limits = { pattern: /^(?:[1-9]|[1-5]\d|60)%$/ };

/** A parameter with OpenSearch's values for a boolean. */
function row(...[name, type, fallback, limits, description]: Parameters<typeof parameterOf>): Parameter {
  const values = type === "boolean" ? { values: ["true", "false"] } : {};
  return parameterOf(name, type, fallback, { ...limits, ...values }, description);
}

// biome-ignore format: a table, aligned so that it reads as one
export const opensearchParameters: readonly Parameter[] = [
  row("action.auto_create_index",                              "boolean", "true",  {},                       "Creates an index when a document is written to it first"),
  row("action.destructive_requires_name",                      "boolean", "false", {},                       "Deletes indices only by their full names"),
  row("cluster.max_shards_per_node",                           "integer", "1000",  from(10, 10_000),         "Shards of a member, above which no index is created"),
  row("cluster.routing.allocation.node_concurrent_recoveries", "integer", "2",     from(1, 32),              "Shards that a member sends or receives at a time"),
  row("cluster.routing.use_adaptive_replica_selection",        "boolean", "true",  {},                       "Searches the copy of a shard that responds fastest"),
  row("indices.recovery.max_concurrent_file_chunks",           "integer", "2",     from(1, 5),               "Parts of a file that a recovery sends at a time"),
  row("script.max_size_in_bytes",                              "integer", "65535", from(1, 1_048_576),       "Maximum size of a stored or inline script, in bytes"),
  row("search.allow_expensive_queries",                        "boolean", "true",  {},                       "Permits queries that examine every document, such as scripts and wildcards"),
  row("search.default_allow_partial_results",                  "boolean", "true",  {},                       "Answers a search although some shards failed"),
  row("search.low_level_cancellation",                         "boolean", "true",  {},                       "Cancels a search within a segment"),
  row("search.max_buckets",                                    "integer", "65535", from(1, 1_000_000),       "Buckets of an aggregation's answer"),
  row("search.max_open_scroll_context",                        "integer", "500",   from(1, 10_000),          "Open scrolls of a member"),
  row("indices.memory.index_buffer_size",                      "text",    "10%",   fixed(percent),           "Share of the heap for documents that are not in a segment yet"),
  row("indices.queries.cache.size",                            "text",    "10%",   fixed(percent),           "Share of the heap for results of filters"),
  row("indices.query.bool.max_clause_count",                   "integer", "1024",  fixed(from(1, 65_536)),   "Clauses of a Boolean query"),
  row("indices.requests.cache.size",                           "text",    "1%",    fixed(percent),           "Share of the heap for answers of shards"),
  row("rest.action.multi.allow_explicit_index",                "boolean", "true",  fixed({}),                "A bulk request may name indices in its body"),
  row("thread_pool.analyze.queue_size",                        "integer", "16",    fixed(from(1, 10_000)),   "Analyses that wait before more are refused"),
  row("thread_pool.get.queue_size",                            "integer", "1000",  fixed(from(1, 100_000)),  "Reads by id that wait before more are refused"),
  row("thread_pool.search.queue_size",                         "integer", "1000",  fixed(from(1, 100_000)),  "Searches that wait before more are refused"),
  row("thread_pool.write.queue_size",                          "integer", "10000", fixed(from(1, 100_000)),  "Writes that wait before more are refused"),
];

/** Settings that the platform sets itself. */
export const opensearchManaged: readonly RegExp[] = [
  /^(bootstrap|discovery|gateway|http|network|node|path|plugins|repositories|transport|s3|reindex\.remote|cluster\.(name|initial_.*|default_number_of_replicas|blocks\..*|no_cluster_manager_block))(\.|$)/,
  /^cluster\.routing\.allocation\.(disk|enable|exclude|include|require|awareness)/,
];
