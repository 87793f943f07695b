import { addressesOf } from "../../addresses.ts";
import { effectiveParameters } from "../../effective-parameters.ts";
import type { ConfigFile, Instance } from "../../engine-driver.ts";
import { issuerSlots, platform, platformRoles, poolerKeyFile, poolerRole, reservedSlots } from "../layout.ts";
import { secretFunction } from "./role.ts";

/** Maximum number of clients for each session of the engine. */
const clientsPerSession = 20;
const maxClients = 10_000;
/** Sessions in which PgBouncer queries the verifiers of users who sign in. */
const lookupSessions = 2;

/** PgBouncer's settings and access rules; empty without a pooler. */
export function poolerFiles(instance: Instance): ConfigFile[] {
  if (instance.spec.pooler === undefined) return [];
  return [
    { name: "pooler.ini", content: settings(instance, instance.spec.pooler), mode: 0o640 },
    { name: "pooler_hba.conf", content: rules(instance), mode: 0o640 },
    // PgBouncer looks up all other users by a function in the engine, which excludes the platform's roles.
    { name: "pooler_users.txt", content: `"${platform}" ""\n`, mode: 0o640 },
  ];
}

function settings(instance: Instance, { mode, port }: { readonly mode: string; readonly port: number }): string {
  const { spec, paths } = instance;
  const all = Number(effectiveParameters(instance).get("max_connections") ?? 0);
  const sessions = Math.max(all - reservedSlots - issuerSlots - lookupSessions, 1);
  const values: [string, string | number][] = [
    ["listen_addr", addressesOf(spec).join(",")],
    ["listen_port", port],
    ["unix_socket_dir", paths.run],
    ["unix_socket_mode", "0770"],
    ["auth_type", "hba"],
    ["auth_hba_file", `${paths.config}/pooler_hba.conf`],
    ["auth_file", `${paths.config}/pooler_users.txt`],
    // Queried at each sign-in, so that a new user or password is valid without a reload.
    ["auth_user", poolerRole],
    ["auth_dbname", platform],
    ["auth_query", `SELECT username, secret FROM ${secretFunction}($1)`],
    ["admin_users", platform],
    ["client_tls_sslmode", "require"],
    ["client_tls_protocols", "secure"],
    // PgBouncer loads one although it requests no client certificates.
    ["client_tls_ca_file", `${paths.tls}/ca.crt`],
    ["client_tls_cert_file", `${paths.tls}/server.crt`],
    ["client_tls_key_file", poolerKeyFile(instance)],
    ["pool_mode", mode],
    // A pool belongs to a user in a database. Two full pools of a database leave a tenth of the connections to clients
    // of the engine's own port.
    ["default_pool_size", Math.max(Math.floor(sessions / 2), 1)],
    ["max_db_connections", Math.max(Math.floor(sessions * 0.9), 1)],
    ["max_client_conn", Math.min(sessions * clientsPerSession, maxClients)],
    ["server_login_retry", 1],
    // Drivers send it although its default is what they need.
    ["ignore_startup_parameters", "extra_float_digits"],
    ["log_connections", 0],
    ["log_disconnections", 0],
    ["log_stats", 0],
  ];
  const lines = values.map(([name, value]) => `${name} = ${value}\n`);
  return `; Written by the agent of ${spec.nodeId}: changes made here are lost.
[databases]
${platform} = host=${paths.run} port=${spec.port} pool_size=${lookupSessions}
* = host=${paths.run} port=${spec.port}
[pgbouncer]
${lines.join("")}`;
}

/** Rules for clients, equal to the engine's: TLS and SCRAM for the allow-list; platform roles use only the sockets. */
function rules({ spec }: Instance): string {
  const everywhere = ["0.0.0.0/0", "::/0"];
  const lines = [
    // Only the machine's own users can access the socket's directory.
    `local pgbouncer ${platform} trust`,
    "local all all reject",
    ...everywhere.flatMap((network) => [
      ...[...platformRoles, poolerRole].map((role) => `host all ${role} ${network} reject`),
      `host pgbouncer all ${network} reject`,
      `host ${platform} all ${network} reject`,
    ]),
    ...spec.allowedCidrs.map((cidr) => `hostssl all all ${cidr} scram-sha-256`),
    ...everywhere.map((network) => `host all all ${network} reject`),
  ];
  return `${lines.join("\n")}\n`;
}
