/** Schema of queues in each database that has one, and what is inside: the platform's, as `platformSchemas` says. */
export const schema = "mdb_queue";

/** Group of users that work with queues: rows of messages, nothing of the registry but to read it. */
export const queueGroup = "holdfast_queue";

/** What the agent lowers itself to when it works on queues: all rows of the schema, nothing else in the engine. */
export const agentRole = "holdfast_queue_agent";

/** Largest payload in bytes, counted without spaces between its parts. */
export const maxPayloadBytes = 262_144;

/** SQLSTATE of refusals that the schema's own code raises. */
export const refusals = {
  queueNotActive: "HQ001",
  payloadNotObject: "HQ002",
  payloadTooLarge: "HQ003",
  outOfRange: "HQ004",
} as const;
