/** Schema of queues in each database that has one, owned by the platform (`platformSchemas`). */
export const schema = "mdb_queue";

/** Group role of users that work with queues: it may change messages and read the list of queues. */
export const queueGroup = "holdfast_queue";

/** Role that the agent's queue sessions switch to: all rows of the schema, and nothing else in the engine. */
export const agentRole = "holdfast_queue_agent";

/** Maximum size of a payload in bytes, as compact JSON. */
export const maxPayloadBytes = 262_144;

/** SQLSTATE of refusals that the schema's own code raises. */
export const refusals = {
  queueNotActive: "HQ001",
  payloadNotObject: "HQ002",
  payloadTooLarge: "HQ003",
  outOfRange: "HQ004",
} as const;
