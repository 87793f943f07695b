import type { Connection, ManagedService } from "@holdfast/sdk/responses.ts";
import { spawn } from "node:child_process";
import type { Writable } from "node:stream";
import { connect } from "node:tls";
import { type ClientProgram, findClientProgram } from "./client-program.ts";
import { type ClientSession, type EngineClient, primaryAddress, type Route, routed } from "./clients/engine-client.ts";
import { engineClientOf } from "./clients/engine-clients.ts";
import type { Context } from "./context.ts";
import { engineLogin } from "./engine-login.ts";
import { ChildEnded, Interrupted } from "./exit-code.ts";
import { type HostName, withHostNames } from "./hosts-namespace.ts";
import { isUnresolved, noteUnresolvedName } from "./name-notice.ts";
import { createTemporaryFiles, type PrivateFiles } from "./private-files.ts";

export interface ConnectOptions extends Route {
  readonly user?: string | undefined;
  readonly database?: string | undefined;
  /** Arguments for the engine's client, after those of the session. */
  readonly args: readonly string[];
}

/**
 * Starts the engine's client with full verification of the server certificate, and exits with its code. The password is
 * passed in a temporary file, an environment variable or the client's input, never as an argument.
 */
export async function connectTo(
  context: Context,
  service: ManagedService,
  { user, database, args, ...route }: ConnectOptions,
): Promise<void> {
  const client = engineClientOf(service);
  if (service.status === "Stopped")
    throw new Error(`${service.name} is Stopped: ${context.program} services start ${service.name} --wait`);
  const connection = routed(await context.client.services.connection(service.id), route);
  const login = await engineLogin(context, service, client, connection, { user, database });
  const files = createTemporaryFiles();
  try {
    const program = await programOf(context, client, connection, files);
    const session = client.session(connection, login, files);
    if (client.ignoresHostName === true) await verifyName(connection);
    const others = client.arguments?.(args) ?? args;
    await run(program, { ...session, args: [...session.args, ...others] }, context);
  } finally {
    files.remove();
  }
}

/** The engine's client. One that connects to the name alone resolves it, also if this host does not. */
async function programOf(
  context: Context,
  client: EngineClient,
  connection: Connection,
  files: Pick<PrivateFiles, "write">,
): Promise<ClientProgram> {
  const program = findClientProgram(client, context.environment);
  const names = namesOf(connection);
  if (client.resolvesName === true && names.length > 0 && (await isUnresolved(context, connection.host))) {
    const resolving = withHostNames(program, names, files);
    if (resolving !== undefined) return resolving;
  }
  await noteUnresolvedName(context, connection.host);
  return program;
}

/** The names of the service and of its nodes, for clients that connect to each node. Empty without a machine. */
function namesOf(connection: Connection): HostName[] {
  const named = [
    { host: connection.host, address: primaryAddress(connection) },
    ...connection.nodes.map(({ hostname, addresses: [address] }) => ({ host: hostname, address })),
  ];
  return named.flatMap(({ host, address }) => (address === undefined ? [] : [{ host, address }]));
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

function run(program: ClientProgram, { args, environment, input }: ClientSession, context: Context): Promise<void> {
  const child = spawn(program.command, [...program.args, ...args], {
    stdio: [input === undefined ? "inherit" : "pipe", "inherit", "inherit"],
    env: { ...withoutCredentials(context.environment), ...environment },
  });
  if (child.stdin !== null && input !== undefined) feed(child.stdin, input);
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

/** Writes the lines, then what the user enters until the client ends. */
function feed(clientInput: Writable, lines: string): void {
  // The client may end before it reads all of them.
  clientInput.on("error", () => undefined);
  clientInput.write(lines);
  process.stdin.pipe(clientInput);
  clientInput.once("close", () => {
    process.stdin.unpipe(clientInput);
    process.stdin.pause();
  });
}

/** The environment without Holdfast credentials. */
function withoutCredentials(environment: Context["environment"]): Record<string, string | undefined> {
  const { HOLDFAST_TOKEN: _token, HOLDFAST_API_KEY_SECRET: _secret, ...rest } = environment;
  return rest;
}
