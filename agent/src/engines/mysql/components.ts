import { literal } from "./session.ts";

/** The functions MD5, SHA1 and SHA, which MySQL 9 no longer has itself. */
const classicHashing = "file://component_classic_hashing";

const rowSql = `SELECT 1 FROM mysql.component WHERE component_urn = ${literal(classicHashing)}`;

/**
 * Statements, one per line of an init file, after which the engine loads its components at each start. They change only
 * this data directory: without the functions on a replica, a view that uses them would stop its replication.
 */
export const componentsSql: readonly string[] = [
  "SET SESSION sql_log_bin = 0",
  `INSERT INTO mysql.component (component_group_id, component_urn) SELECT 1, ${literal(classicHashing)} WHERE NOT EXISTS (${rowSql})`,
];
