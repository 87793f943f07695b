import { addressesOf } from "../../engine-addresses.ts";
import { effectiveParameters } from "../../effective-parameters.ts";
import type { ConfigFile, Instance } from "../../engine-driver.ts";
import { issuerSlots, platform, platformRoles, poolerKeyFile, poolerRole, reservedSlots } from "../layout.ts";
import { secretFunction } from "./role.ts";

/** Clients that may wait for each session that the engine has. */
const clientsPerSession = 20;
const mostClients = 10_000;
/** Sessions in which it asks for the secrets of those who sign in. */
const askers = 2;

/** Pure: PgBouncer's settings and who may come to it; nothing without a pooler. */
export function poolerFiles(instance: Instance): ConfigFile[] {
  if (instance.spec.pooler === undefined) return [];
  return [
    { name: "pooler.ini", content: settings(instance, instance.spec.pooler), mode: 0o640 },
    { name: "pooler_hba.conf", content: rules(instance), mode: 0o640 },
    // The pooler looks all other users up in the engine, by a function that leaves the platform's roles out.
    { name: "pooler_users.txt", content: `"${platform}" ""\n`, mode: 0o640 },
  ];
}

function settings(instance: Instance, { mode, port }: { readonly mode: string; readonly port: number }): string {
  const { spec, paths } = instance;
  const all = Number(effectiveParameters(instance).get("max_connections") ?? 0);
  const sessions = Math.max(all - reservedSlots - issuerSlots - askers, 1);
  const values: [string, string | number][] = [
    ["listen_addr", addressesOf(spec).join(",")],
    ["listen_port", port],
    ["unix_socket_dir", paths.run],
    ["unix_socket_mode", "0770"],
    ["auth_type", "hba"],
    ["auth_hba_file", `${paths.config}/pooler_hba.conf`],
    ["auth_file", `${paths.config}/pooler_users.txt`],
    // Asked at each sign-in: a new user or password counts at once.
    ["auth_user", poolerRole],
    ["auth_dbname", platform],
    ["auth_query", `SELECT username, secret FROM ${secretFunction}($1)`],
    ["admin_users", platform],
    ["client_tls_sslmode", "require"],
    ["client_tls_protocols", "secure"],
    // It loads one even though it asks for no certificate.
    ["client_tls_ca_file", `${paths.tls}/ca.crt`],
    ["client_tls_cert_file", `${paths.tls}/server.crt`],
    ["client_tls_key_file", poolerKeyFile(instance)],
    ["pool_mode", mode],
    // A pool is a user's in a database. Two full ones of a database leave a tenth to those who come to the engine itself.
    ["default_pool_size", Math.max(Math.floor(sessions / 2), 1)],
    ["max_db_connections", Math.max(Math.floor(sessions * 0.9), 1)],
    ["max_client_conn", Math.min(sessions * clientsPerSession, mostClients)],
    ["server_login_retry", 1],
    // What drivers send although the engine's default is what they want.
    ["ignore_startup_parameters", "extra_float_digits"],
    ["log_connections", 0],
    ["log_disconnections", 0],
    ["log_stats", 0],
  ];
  const lines = values.map(([name, value]) => `${name} = ${value}\n`);
  return `; Written by the agent of ${spec.nodeId}: changes made here are lost.
[databases]
${platform} = host=${paths.run} port=${spec.port} pool_size=${askers}
* = host=${paths.run} port=${spec.port}
[pgbouncer]
${lines.join("")}`;
}

/** As the engine's own: TLS and SCRAM for those on the list. The platform's roles come by the sockets alone. */
function rules({ spec }: Instance): string {
  const everywhere = ["0.0.0.0/0", "::/0"];
  const lines = [
    // Only the machine's own users reach the socket's directory.
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
