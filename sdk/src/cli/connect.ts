import type { Connection, ManagedService } from "../responses.ts";
import { spawn } from "node:child_process";
import { connect } from "node:tls";
import { findClientProgram } from "./client-program.ts";
import { conninfo, passLine, primaryAddress } from "./conninfo.ts";
import type { Context } from "./context.ts";
import { ChildEnded, Interrupted } from "./exit-code.ts";
import { createTemporaryFiles } from "./private-files.ts";

export interface ConnectOptions {
  readonly user?: string | undefined;
  readonly database?: string | undefined;
  /** Further arguments of the engine's client. */
  readonly args: readonly string[];
}

interface Session {
  readonly names: readonly string[];
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Starts psql or valkey-cli with full verification of the server certificate, and exits with its code. The password is
 * passed in a temporary file or an environment variable, never as an argument.
 */
export async function connectTo(context: Context, service: ManagedService, options: ConnectOptions): Promise<void> {
  const connection = await context.client.services.connection(service.id);
  const user = options.user ?? connection.user;
  const { password } = await context.client.databaseUsers.revealPassword(service.id, user);
  const files = createTemporaryFiles();
  try {
    const caFile = files.write("ca.pem", connection.ca_certificate);
    const session =
      service.database_type === "postgresql"
        ? psqlSession(connection, caFile, files.write("passfile", passLine(connection, user, password)), options)
        : valkeySession(connection, caFile, user, password);
    // valkey-cli verifies the issuer of the certificate but not its host name.
    if (service.database_type === "valkey") await verifyName(connection);
    await run(session, options.args, context);
  } finally {
    files.remove();
  }
}

function psqlSession(
  connection: Connection,
  caFile: string,
  passFile: string,
  { user, database }: ConnectOptions,
): Session {
  return { names: ["psql"], args: [conninfo(connection, { caFile, passFile }, { user, database })], environment: {} };
}

function valkeySession(connection: Connection, caFile: string, user: string, password: string): Session {
  const address = primaryAddress(connection) ?? connection.host;
  const args = [
    "-h",
    address,
    "-p",
    String(connection.port),
    "--tls",
    "--sni",
    connection.host,
    "--cacert",
    caFile,
    "--user",
    user,
  ];
  return { names: ["valkey-cli", "redis-cli"], args, environment: { REDISCLI_AUTH: password } };
}

/** Rejects unless the server's certificate has the host name of the service. */
function verifyName(connection: Connection): Promise<void> {
  const { host, port, ca_certificate: ca } = connection;
  const address = primaryAddress(connection) ?? host;
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, ca, servername: host }, () => {
      socket.destroy();
      resolve();
    });
    socket.once("error", (error) => {
      const isCut = "code" in error && error.code === "ECONNRESET";
      reject(isCut ? new Error(`${host} refuses connections from here; services get shows its allowed_cidrs`) : error);
    });
  });
}

function run({ names, args, environment }: Session, more: readonly string[], context: Context): Promise<void> {
  const program = findClientProgram(names, context.environment);
  const child = spawn(program.command, [...program.args, ...args, ...more], {
    stdio: "inherit",
    env: { ...withoutCredentials(context.environment), ...environment },
  });
  const { signal: ending } = context;
  const end = () => ending.reason instanceof Interrupted && ending.reason.endsChildren && child.kill("SIGTERM");
  ending.addEventListener("abort", end);
  end();
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      if (code === 0) resolve();
      else if (ending.reason instanceof Interrupted && ending.reason.endsChildren) reject(ending.reason);
      else reject(new ChildEnded(code ?? (signal === "SIGINT" ? 130 : 1)));
    });
  });
}

/** The environment without Holdfast credentials. */
function withoutCredentials(environment: Context["environment"]): Record<string, string | undefined> {
  const { HOLDFAST_TOKEN: _token, HOLDFAST_API_KEY_SECRET: _secret, ...rest } = environment;
  return rest;
}
