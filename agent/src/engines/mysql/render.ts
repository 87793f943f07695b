import { join } from "node:path";
import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { ConfigFile, Instance } from "../engine-driver.ts";
import { frontFiles } from "../front/front-config.ts";
import { binlogFileBytes } from "./backup/binlog-position.ts";
import { componentsSql } from "./components.ts";
import { frontOf, peersFrontOf, reservedSessions, userSessions } from "./front.ts";
import {
  authorityFile,
  certificateFile,
  dataDirectory,
  engineSocket,
  keyFile,
  optionsName,
  platform,
  processIdFile,
  replicaUser,
  temporaryDirectory,
} from "./layout.ts";
import { poolerFrontOf } from "./pooler.ts";
import { hasPeers, replicationSettings } from "./replication/peer-port.ts";

const startName = "start.sql";

/** Ends a session without TLS. Accounts that users create in SQL may lack REQUIRE SSL. */
const refuseSessions =
  "DO (SELECT IF(VARIABLE_VALUE = '', (SELECT 1 UNION SELECT 2), 1) FROM performance_schema.session_status WHERE VARIABLE_NAME = 'Ssl_cipher')";

/**
 * Statements of each start: exclude the platform's sessions from statistics, and log no notes from then on, such as
 * those of every session that ends without a farewell.
 */
const startSql = [
  ...[platform, replicaUser].map(
    (user) => `INSERT INTO performance_schema.setup_actors VALUES ('%', '${user}', '%', 'NO', 'NO')`,
  ),
  "SET GLOBAL log_error_verbosity = 2",
  // For data of a release that did not do so at their creation.
  ...componentsSql,
]
  .map((statement) => `${statement};\n`)
  .join("");

/** Parameter whose value in the engine includes sessions of the platform. */
export const sessionsParameter = "max_connections";

/** Options that differ from the names of their variables. */
const optionNames: ReadonlyMap<string, string> = new Map([["time_zone", "default_time_zone"]]);

/** The option file, the statements of each start, and the files of the front. */
export function render(instance: Instance): ConfigFile[] {
  const pooler = poolerFrontOf(instance);
  return [
    { name: optionsName, content: options(instance), mode: 0o640 },
    { name: startName, content: startSql, mode: 0o640 },
    ...frontFiles(frontOf(instance)),
    ...(hasPeers(instance) ? frontFiles(peersFrontOf(instance)) : []),
    ...(pooler === undefined ? [] : frontFiles(pooler)),
  ];
}

function options(instance: Instance): string {
  const { spec, paths } = instance;
  const values = effectiveParameters(instance);
  for (const [name, value] of [...fixedSettings(instance), ...replicationSettings(instance)]) values.set(name, value);
  const lines = [...values]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([variable, value]) => [optionNames.get(variable) ?? variable, value] as const)
    .map(([name, value]) => `${name} = "${value.replaceAll(/[\\"]/g, "\\$&").replaceAll(/[\r\n\0]/g, " ")}"`);
  return `# Written by the agent of ${spec.nodeId}: changes made here are lost.\n[mysqld]\nbasedir = "${paths.software}"\n${lines.join("\n")}\n`;
}

/**
 * Limit of temporary tables in mapped files, in bytes: more than any disk. Each session retains a block of 1 MiB. Once
 * both this limit and that of memory are reached, a new table begins in InnoDB, where the engine does not find one that
 * a statement reads twice (MySQL bug 112704).
 */
const temporaryFilesBytes = 2 ** 50;

/** Settings of the platform: no parameters of the catalog, except the number of sessions, which includes its own. */
function fixedSettings(instance: Instance): [string, string][] {
  const memoryBytes = Number(instance.spec.memoryBytes);
  return [
    // The only socket of clients: the front connects to it after the check of the address.
    ["socket", engineSocket(instance)],
    ["mysqlx", "OFF"],
    ["datadir", dataDirectory(instance)],
    ["tmpdir", temporaryDirectory(instance)],
    ["pid_file", processIdFile(instance)],
    ["init_file", join(instance.paths.config, startName)],
    ["init_connect", refuseSessions],
    ["persisted_globals_load", "OFF"],
    [sessionsParameter, String(userSessions(instance) + reservedSessions)],
    ["tls_version", "TLSv1.2,TLSv1.3"],
    ["ssl_cert", certificateFile(instance)],
    ["ssl_key", keyFile(instance)],
    ["ssl_ca", authorityFile(instance)],
    ["auto_generate_certs", "OFF"],
    ["caching_sha2_password_auto_generate_rsa_keys", "OFF"],
    ["partial_revokes", "ON"],
    ["automatic_sp_privileges", "OFF"],
    ["activate_all_roles_on_login", "ON"],
    ["log_bin_trust_function_creators", "ON"],
    ["local_infile", "OFF"],
    ["secure_file_priv", "NULL"],
    ["lower_case_table_names", "0"],
    // Users without CONNECTION_ADMIN cannot write; the platform's probe can.
    ["read_only", instance.writesBlocked === true ? "ON" : "OFF"],
    // A commit is on disk before it is acknowledged.
    ["sync_binlog", "1"],
    ["innodb_flush_log_at_trx_commit", "1"],
    ["innodb_doublewrite", "ON"],
    ["log_bin", "binlog"],
    ["max_binlog_size", String(binlogFileBytes)],
    // The agent removes files, once they are archived.
    ["binlog_expire_logs_seconds", "0"],
    ["gtid_mode", "ON"],
    ["enforce_gtid_consistency", "ON"],
    // Notes are the only report of a crash recovery, during which the engine accepts no connections.
    ["log_error_verbosity", "3"],
    ["log_timestamps", "UTC"],
    // Default sizes assume a machine that runs nothing else.
    ["temptable_max_ram", String(Math.max(Math.floor(memoryBytes / 32), 2 << 20))],
    ["temptable_max_mmap", String(temporaryFilesBytes)],
    ["innodb_log_buffer_size", "16777216"],
    ["performance_schema_max_table_instances", "1000"],
    ["performance_schema_max_table_handles", "1000"],
    ["performance_schema_digests_size", "2000"],
    ["performance_schema_error_size", "0"],
  ].filter(([name]) => !isUserParameter(instance, name)) as [string, string][];
}

/** True for a parameter that only users set. */
function isUserParameter({ spec }: Instance, name = ""): boolean {
  return name !== sessionsParameter && parametersOf(spec.engine, spec.version).has(name);
}
