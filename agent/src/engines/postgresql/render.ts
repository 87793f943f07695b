import { addressesOf } from "../engine-addresses.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { ConfigFile, Instance } from "../engine-driver.ts";
import { dataDirectory, ownKeyFile, platform } from "./layout.ts";

/** Slots that only the platform can take, so that it gets in when users took all others. */
const reservedSlots = 5;

/** Pure: postgresql.conf, pg_hba.conf and pg_ident.conf. */
export function render(instance: Instance): ConfigFile[] {
  return [
    { name: "postgresql.conf", content: settings(instance), mode: 0o640 },
    { name: "pg_hba.conf", content: rules(instance.spec.allowedCidrs), mode: 0o640 },
    // Only the machine's own users reach the socket's directory; which names they have is the machine's business.
    { name: "pg_ident.conf", content: `${platform} /^.*$ ${platform}\n`, mode: 0o640 },
  ];
}

function settings(instance: Instance): string {
  const { spec } = instance;
  const values = effectiveParameters(instance);
  for (const [name, value] of fixed(instance)) values.set(name, value);
  const lines = [...values].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => `${name} = ${quote(value)}`);
  return `# Written by the agent of ${spec.nodeId}: changes made here are lost.\n${lines.join("\n")}\n`;
}

/** What the platform decides; nothing of it is in the catalogue. */
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
    ["wal_level", "replica"],
    ["wal_log_hints", "on"],
    ["max_wal_senders", "10"],
    ["max_replication_slots", "10"],
    // A forgotten slot must not fill the disk.
    ["max_slot_wal_keep_size", `${Math.max(Math.floor(storageMib / 5), 256)}MB`],
    ["autovacuum", "on"],
    ["huge_pages", "off"],
  ];
  if (Number(spec.version) >= 17) all.push(["allow_alter_system", "off"]);
  return all;
}

/** TLS and SCRAM for those on the list, the socket for the platform, nothing for anybody else. */
function rules(cidrs: readonly string[]): string {
  const lines = [
    `local   all         ${platform}                            peer map=${platform}`,
    "local   all         all                                 reject",
    `host    all         ${platform}  all                       reject`,
    `host    ${platform}    all       all                       reject`,
    ...cidrs.map((cidr) => `hostssl all         all       ${cidr}  scram-sha-256`),
    "host    all         all       all                       reject",
  ];
  return `${lines.join("\n")}\n`;
}

function quote(value: string): string {
  return `'${value
    .replaceAll("\\", "\\\\")
    .replaceAll("'", "''")
    .replaceAll(/[\r\n\0]/g, " ")}'`;
}
