/*
 * Clients of the engines, by the value of `database_type`: a line for each.
 */
export { kafka } from "./kafka.ts";
export { mongodb } from "./mongodb.ts";
export { mysql } from "./mysql.ts";
export { opensearch } from "./opensearch.ts";
export { postgresql } from "./postgresql.ts";
export { tsql } from "./tsql.ts";
export { valkey } from "./valkey.ts";
