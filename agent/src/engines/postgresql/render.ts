import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { minTransactionMs } from "@holdfast/common/engine-catalog/postgresql-parameters.ts";
import { parseQuantity } from "@holdfast/common/engine-catalog/quantity.ts";
import type { PlatformAccess } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { addressesOf } from "../addresses.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { ConfigFile, Instance } from "../engine-driver.ts";
import { otherMembers, ownMember, roleOf } from "../members.ts";
import {
  dataDirectory,
  issuerSlots,
  ownKeyFile,
  platform,
  platformRoles,
  poolerRole,
  replicaRole,
  reservedSlots,
} from "./layout.ts";
import { poolerFiles } from "./pooler/config.ts";
import { memberMap, memberName, primaryConninfo, synchronizesSlots } from "./replication/members.ts";

/** Differences of an engine that is PostgreSQL with a front end. */
export interface FrontEndOptions {
  /** True if a front end on this machine signs its clients in over the socket, with their passwords. */
  readonly viaSocket?: boolean;
  /** True if the network reaches the front end only: PostgreSQL itself admits members and no clients. */
  readonly isHidden?: boolean;
  /** Roles without passwords as which programs of this machine sign in over the socket. */
  readonly programRoles?: readonly string[];
  /** Libraries that are loaded at the start, in addition to the platform's. */
  readonly libraries?: readonly string[];
  /** Settings of these libraries. */
  readonly settings?: readonly (readonly [name: string, value: string])[];
}

/** Postgresql.conf, pg_hba.conf and pg_ident.conf, and the files of the pooler. */
export function render(instance: Instance, options: FrontEndOptions = {}): ConfigFile[] {
  const { programRoles = [] } = options;
  return [
    { name: "postgresql.conf", content: settings(instance, options), mode: 0o640 },
    { name: "pg_hba.conf", content: rules(instance, options), mode: 0o640 },
    // Only the machine's own users can access the socket's directory, so any user name is mapped.
    {
      name: "pg_ident.conf",
      content: [
        ...[...platformRoles, poolerRole, ...programRoles].map((role) => `${platform} /^.*$ ${role}\n`),
        ...memberLines(instance),
      ].join(""),
      mode: 0o640,
    },
    ...poolerFiles(instance),
  ];
}

function settings(instance: Instance, options: FrontEndOptions): string {
  const { spec } = instance;
  const values = effectiveParameters(instance);
  values.set(transactionLimit, raisedTransactionTimeout(values.get(transactionLimit) ?? "0"));
  for (const [name, value] of fixedSettings(instance, options)) values.set(name, value);
  const lines = [...values].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name} = ${quote(value)}`);
  return `# Written by the agent of ${spec.nodeId}: changes made here are lost.\n${lines.join("\n")}\n`;
}

const transactionLimit = "transaction_timeout";

/** Raises a `transaction_timeout` that is too short for any session to start, the platform's included. */
function raisedTransactionTimeout(limit: string): string {
  const ms = parseQuantity(limit, "ms") ?? 0;
  return ms > 0 && ms < minTransactionMs ? `${minTransactionMs}ms` : limit;
}

/** Settings that the platform determines; none of them is in the catalog. */
function fixedSettings(instance: Instance, options: FrontEndOptions): (readonly [string, string])[] {
  const { spec, paths } = instance;
  const { isHidden = false, libraries = [], settings: additional = [] } = options;
  // A change takes a restart, so it listens for members before there are any.
  const addresses = isHidden ? [spec.address] : addressesOf(spec);
  const storageMib = Number(spec.storageBytes / 1_048_576n);
  const all: (readonly [string, string])[] = [
    ["listen_addresses", addresses.join(",")],
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
    // A session that authenticates while the allow-list changes is checked against the old one: limit that time.
    ["authentication_timeout", "10s"],
    ["superuser_reserved_connections", String(reservedSlots)],
    ["reserved_connections", String(issuerSlots)],
    ["shared_preload_libraries", ["pg_stat_statements", "auto_explain", ...libraries].join(",")],
    // Statements that set passwords are utility statements: they are neither counted nor logged, even if they fail.
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
    // An abandoned slot must not fill the disk.
    ["max_slot_wal_keep_size", `${Math.max(Math.floor(storageMib / 5), 256)}MB`],
    ["autovacuum", "on"],
    ["huge_pages", "off"],
  ];
  // Sessions of the platform set it to off.
  if (instance.writesBlocked === true) all.push(["default_transaction_read_only", "on"]);
  if (Number(spec.version) >= 17) all.push(["allow_alter_system", "off"]);
  return [...all, ...additional, ...replicationSettings(instance, storageMib)];
}

/** Settings of a service that has or had replicas. All of them can change while the engine runs. */
function replicationSettings(instance: Instance, storageMib: number): [string, string][] {
  if (instance.spec.replication === undefined) return [];
  const conninfo = primaryConninfo(instance);
  const member = ownMember(instance);
  return [
    // Members authenticate each other by certificate.
    ["ssl_ca_file", `${instance.paths.tls}/ca.crt`],
    ["wal_receiver_status_interval", "1s"],
    ["wal_retrieve_retry_interval", "500ms"],
    ["wal_receiver_timeout", "5s"],
    ["wal_sender_timeout", "10s"],
    // A new primary has no slot yet for the log that a follower lacks.
    ["wal_keep_size", `${Math.max(Math.min(Math.floor(storageMib / 10), 1_024), 64)}MB`],
    ...synchronousSettings(instance),
    ...slotSettings(instance),
    ...(conninfo === undefined || member === undefined
      ? []
      : ([
          ["primary_conninfo", conninfo],
          ["primary_slot_name", memberName(member.number)],
        ] as [string, string][])),
  ];
}

/** Settings of synchronous replication. Commits wait for one of the synchronous replicas; the others may lag. */
function synchronousSettings({ spec }: Instance): [string, string][] {
  const names = spec.replication?.syncNumbers.map((number) => `"${memberName(number)}"`) ?? [];
  if (names.length === 0 || roleOf(spec) !== "primary") return [];
  return [["synchronous_standby_names", `ANY 1 (${names.join(", ")})`]];
}

/**
 * A consumer of a slot with FAILOVER gets a change once all replicas have it: otherwise it would be ahead of the next
 * primary, and skip the changes that this one makes at the same positions.
 */
function slotSettings(instance: Instance): [string, string][] {
  if (!synchronizesSlots(instance) || roleOf(instance.spec) !== "primary") return [];
  const names = otherMembers(instance).map(({ number }) => memberName(number));
  return names.length === 0 ? [] : [["synchronized_standby_slots", names.join(",")]];
}

/** Maps members' certificates to the replication role by common name. */
function memberLines({ spec }: Instance): string[] {
  return (spec.replication?.members ?? []).map(({ nodeId }) => `${memberMap} "${nodeId}" ${replicaRole}\n`);
}

/** TLS and SCRAM for the allow-list, the socket for the platform, and rejection of everything else. */
function rules({ spec }: Instance, options: FrontEndOptions): string {
  const { viaSocket = false, isHidden = false, programRoles = [] } = options;
  const members = spec.replication !== undefined && roleOf(spec) !== "none";
  const lines = [
    ...platformRoles.map((role) => `local   all         ${role}    peer map=${platform}`),
    `local   replication ${platform}                            peer map=${platform}`,
    ...programRoles.map((role) => `local   ${defaultDatabase}   ${role}                    peer map=${platform}`),
    ...(spec.pooler === undefined ? [] : [poolerLookupRule]),
    ...(spec.pooler === undefined && !viaSocket ? [] : socketRules),
    "local   all         all                                 reject",
    ...[...platformRoles, poolerRole, ...programRoles].map((role) => `host    all         ${role}  all      reject`),
    ...(members ? memberRules : []),
    `host    all         ${replicaRole}  all      reject`,
    `host    ${platform}    all       all                       reject`,
    ...spec.platformAccess.flatMap(platformAccessRules),
    ...(isHidden ? [] : spec.allowedCidrs).map((cidr) => `hostssl all         all       ${cidr}  scram-sha-256`),
    "host    all         all       all                       reject",
  ];
  return `${lines.join("\n")}\n`;
}

const poolerLookupRule = `local   ${platform}    ${poolerRole}                    peer map=${platform}`;

/** Socket rules for PgBouncer and front ends, which connect as their clients with the clients' own SCRAM proof. */
const socketRules = [
  `local   all         ${poolerRole},${replicaRole}        reject`,
  `local   ${platform}    all                                 reject`,
  "local   all         all                                 scram-sha-256",
];

/** A platform role may connect to one database from its own networks, independent of the owner's allow-list. */
function platformAccessRules({ role, database, from }: PlatformAccess): string[] {
  return [
    ...from.map((cidr) => `hostssl "${database.replaceAll('"', '""')}" ${role} ${cidr} scram-sha-256`),
    `host    all         ${role}  all      reject`,
  ];
}

/** Members connect by certificate from any address; the machine's firewall restricts who can reach it. */
const memberRules = [
  `hostssl replication ${replicaRole} all cert map=${memberMap}`,
  `hostssl ${platform} ${replicaRole} all cert map=${memberMap}`,
];

function quote(value: string): string {
  return `'${value
    .replaceAll("\\", "\\\\")
    .replaceAll("'", "''")
    .replaceAll(/[\r\n\0]/g, " ")}'`;
}
