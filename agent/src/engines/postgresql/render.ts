import { leastTransactionMs } from "@holdfast/common/engine-catalog/postgresql-parameters.ts";
import { parseQuantity } from "@holdfast/common/engine-catalog/quantity.ts";
import type { PlatformAccess } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { addressesOf } from "../engine-addresses.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { ConfigFile, Instance } from "../engine-driver.ts";
import { ownMember, roleOf } from "../members.ts";
import {
  dataDirectory,
  issuerSlots,
  ownKeyFile,
  platform,
  platformRoles,
  poolerRole,
  reservedSlots,
} from "./layout.ts";
import { poolerFiles } from "./pooler/config.ts";
import { memberMap, memberName, primaryConninfo, replicaRole } from "./replication/members.ts";

/** Pure: postgresql.conf, pg_hba.conf and pg_ident.conf, and the pooler's. */
export function render(instance: Instance): ConfigFile[] {
  return [
    { name: "postgresql.conf", content: settings(instance), mode: 0o640 },
    { name: "pg_hba.conf", content: rules(instance), mode: 0o640 },
    // Only the machine's own users reach the socket's directory; which names they have is the machine's business.
    {
      name: "pg_ident.conf",
      content: [
        ...[...platformRoles, poolerRole].map((role) => `${platform} /^.*$ ${role}\n`),
        ...memberLines(instance),
      ].join(""),
      mode: 0o640,
    },
    ...poolerFiles(instance),
  ];
}

function settings(instance: Instance): string {
  const { spec } = instance;
  const values = effectiveParameters(instance);
  values.set(transactionLimit, bearable(values.get(transactionLimit) ?? "0"));
  for (const [name, value] of fixed(instance)) values.set(name, value);
  const lines = [...values].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name} = ${quote(value)}`);
  return `# Written by the agent of ${spec.nodeId}: changes made here are lost.\n${lines.join("\n")}\n`;
}

const transactionLimit = "transaction_timeout";

/** Pure: a limit from before there was a least one is raised: with it no session begins, the platform's neither. */
function bearable(limit: string): string {
  const ms = parseQuantity(limit, "ms") ?? 0;
  return ms > 0 && ms < leastTransactionMs ? `${leastTransactionMs}ms` : limit;
}

/** What the platform decides; nothing of it is in the catalog. */
function fixed(instance: Instance): [string, string][] {
  const { spec, paths } = instance;
  const storageMib = Number(spec.storageBytes / 1_048_576n);
  const all: [string, string][] = [
    ["listen_addresses", addressesOf(spec).join(",")],
    ["port", String(spec.port)],
    ["unix_socket_directories", paths.run],
    ["unix_socket_permissions", "0770"],
    ["data_directory", dataDirectory(instance)],
    ["hba_file", `${paths.config}/pg_hba.conf`],
    ["ident_file", `${paths.config}/pg_ident.conf`],
    ["ssl", "on"],
    ["ssl_cert_file", `${paths.tls}/server.crt`],
    ["ssl_key_file", ownKeyFile(instance)],
    ["ssl_min_protocol_version", "TLSv1.2"],
    ["password_encryption", "scram-sha-256"],
    // A session that is signing in while the allow-list changes is judged by the old one: not for long.
    ["authentication_timeout", "10s"],
    ["superuser_reserved_connections", String(reservedSlots)],
    ["reserved_connections", String(issuerSlots)],
    ["shared_preload_libraries", "pg_stat_statements,auto_explain"],
    // Statements that set passwords are utility statements: neither counted nor logged, whether they work or fail.
    ["pg_stat_statements.track_utility", "off"],
    ["log_statement", "none"],
    ["log_min_error_statement", "panic"],
    ["log_min_duration_statement", "-1"],
    ["log_destination", "stderr"],
    ["logging_collector", "off"],
    ["log_line_prefix", "%n [%p] "],
    ["log_checkpoints", "off"],
    ["log_lock_waits", "on"],
    ["log_temp_files", "64MB"],
    ["lc_messages", "C"],
    ["wal_log_hints", "on"],
    ["max_wal_senders", "10"],
    ["max_replication_slots", "10"],
    // A forgotten slot must not fill the disk.
    ["max_slot_wal_keep_size", `${Math.max(Math.floor(storageMib / 5), 256)}MB`],
    ["autovacuum", "on"],
    ["huge_pages", "off"],
  ];
  // Sessions of the platform pin it to off.
  if (instance.writesBlocked === true) all.push(["default_transaction_read_only", "on"]);
  if (Number(spec.version) >= 17) all.push(["allow_alter_system", "off"]);
  return [...all, ...replicationSettings(instance, storageMib)];
}

/** Of a service that has, or had, several members; all of them can change while the engine runs. */
function replicationSettings(instance: Instance, storageMib: number): [string, string][] {
  if (instance.spec.replication === undefined) return [];
  const conninfo = primaryConninfo(instance);
  const own = ownMember(instance);
  return [
    // Members show each other certificates.
    ["ssl_ca_file", `${instance.paths.tls}/ca.crt`],
    ["wal_receiver_status_interval", "1s"],
    ["wal_retrieve_retry_interval", "500ms"],
    ["wal_receiver_timeout", "5s"],
    ["wal_sender_timeout", "10s"],
    // Another primary has no slot yet for the log that a follower lacks at first.
    ["wal_keep_size", `${Math.max(Math.min(Math.floor(storageMib / 10), 1_024), 64)}MB`],
    ...synchronousSettings(instance),
    ...(conninfo === undefined || own === undefined
      ? []
      : ([
          ["primary_conninfo", conninfo],
          ["primary_slot_name", memberName(own.number)],
        ] as [string, string][])),
  ];
}

/** One of them is enough: the others may be behind. */
function synchronousSettings({ spec }: Instance): [string, string][] {
  const names = spec.replication?.syncNumbers.map((number) => `"${memberName(number)}"`) ?? [];
  if (names.length === 0 || roleOf(spec) !== "primary") return [];
  return [["synchronous_standby_names", `ANY 1 (${names.join(", ")})`]];
}

/** The members' certificates, by the common name. */
function memberLines({ spec }: Instance): string[] {
  return (spec.replication?.members ?? []).map(({ nodeId }) => `${memberMap} "${nodeId}" ${replicaRole}\n`);
}

/** TLS and SCRAM for those on the list, the socket for the platform, nothing for anybody else. */
function rules({ spec }: Instance): string {
  const members = spec.replication !== undefined && roleOf(spec) !== "none";
  const lines = [
    ...platformRoles.map((role) => `local   all         ${role}    peer map=${platform}`),
    `local   replication ${platform}                            peer map=${platform}`,
    ...(spec.pooler === undefined ? [] : poolerRules),
    "local   all         all                                 reject",
    ...[...platformRoles, poolerRole].map((role) => `host    all         ${role}  all      reject`),
    ...(members ? memberRules : []),
    `host    ${platform}    all       all                       reject`,
    ...spec.platformAccess.flatMap(platformAccessRules),
    ...spec.allowedCidrs.map((cidr) => `hostssl all         all       ${cidr}  scram-sha-256`),
    "host    all         all       all                       reject",
  ];
  return `${lines.join("\n")}\n`;
}

/** Through the socket come those whom the pooler took in, each with the proof of its own password. */
const poolerRules = [
  `local   ${platform}    ${poolerRole}                    peer map=${platform}`,
  `local   all         ${poolerRole},${replicaRole}        reject`,
  `local   ${platform}    all                                 reject`,
  "local   all         all                                 scram-sha-256",
];

/** A role of the platform has one database, from its own networks, whatever the owner's list says. */
function platformAccessRules({ role, database, from }: PlatformAccess): string[] {
  return [
    ...from.map((cidr) => `hostssl "${database.replaceAll('"', '""')}" ${role} ${cidr} scram-sha-256`),
    `host    all         ${role}  all      reject`,
  ];
}

/** By certificate from wherever they are: who may reach the machine at all is for its edge. */
const memberRules = [
  `hostssl replication ${replicaRole} all cert map=${memberMap}`,
  `hostssl ${platform} ${replicaRole} all cert map=${memberMap}`,
  `host all ${replicaRole} all reject`,
];

function quote(value: string): string {
  return `'${value
    .replaceAll("\\", "\\\\")
    .replaceAll("'", "''")
    .replaceAll(/[\r\n\0]/g, " ")}'`;
}
