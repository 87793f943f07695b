import { MongoClient, type MongoClientOptions, MongoServerError } from "mongodb";
import type { ConformanceClient, ConnectOptions } from "./conformance-subject.ts";
import type { EngineMachine } from "./engine-machine.ts";

/** Name of the listener of clients. */
const listenerName = "mongodb";
/** Refused connections are errors only after this time. */
const selectionMs = 1_500;

export interface MongodbTarget {
  /** PEM of the authority to trust. */
  readonly ca: string;
  readonly address: string;
  readonly port: number;
  /** Name that the certificate must have. */
  readonly serverName: string;
}

/** Listener of a machine's clients, for its settings. */
export const clientListener = (port: number) => ({
  $typeName: "holdfast.agent.v1.Listener" as const,
  name: listenerName,
  address: "127.0.0.1",
  port,
  audience: "private",
});

/** A client that signs in at its first command, with one connection for commands; the caller closes it. */
export function openMongodb(
  { ca, address, port, serverName }: MongodbTarget,
  { user, password, from = address }: Omit<ConnectOptions, "serverName">,
  options: MongoClientOptions = {},
): MongoClient {
  return new MongoClient(`mongodb://${address}:${port}/?directConnection=true`, {
    auth: { username: user, password },
    authSource: "admin",
    tls: true,
    ca,
    servername: serverName,
    localAddress: from,
    maxPoolSize: 1,
    serverSelectionTimeoutMS: selectionMs,
    ...options,
  });
}

/** A client of a process behind the front end, at its Unix socket. */
export function openMongodbAt(
  path: string,
  { user, password }: Pick<ConnectOptions, "user" | "password">,
): MongoClient {
  return new MongoClient(`mongodb://${encodeURIComponent(path)}`, {
    auth: { username: user, password },
    serverSelectionTimeoutMS: selectionMs,
  });
}

/** Names of the commands among these that the server ran. */
export async function succeedingCommands(
  client: MongoClient,
  names: readonly string[],
  commandOf: (name: string) => Readonly<Record<string, unknown>>,
): Promise<string[]> {
  const succeeded: string[] = [];
  for (const name of names) {
    const database = client.db(name === "renameCollection" ? "admin" : "defaultdb");
    const { ok } = await database.command(commandOf(name)).catch((error: unknown) => {
      if (error instanceof MongoServerError) return { ok: 0 };
      throw error;
    });
    if (ok === 1) succeeded.push(name);
  }
  await client.close();
  return succeeded;
}

/** Target of the clients of a machine under test. */
export function targetOf(machine: EngineMachine): MongodbTarget {
  const { spec } = machine.instance;
  const port = spec.listeners.find(({ name }) => name === listenerName)?.port ?? 0;
  return { ca: machine.ca, address: spec.address, port, serverName: machine.serverName };
}

export async function mongodbClient(machine: EngineMachine, options: ConnectOptions): Promise<ConformanceClient> {
  const { serverName = machine.serverName } = options;
  // A driver takes an empty password for a mistake, and sends nothing.
  const password = options.password === "" ? "none" : options.password;
  const client = openMongodb({ ...targetOf(machine), serverName }, { ...options, password });
  const ended = new Promise<void>((resolve) => client.once("connectionClosed", () => resolve()));
  const values = client.db("defaultdb").collection<{ _id: string; value: string }>("kv");
  try {
    await values.findOne({ _id: "" });
  } catch (error) {
    await client.close();
    throw error;
  }
  return {
    async write(key, value) {
      await values.updateOne({ _id: key }, { $set: { value } }, { upsert: true });
    },
    read: async (key) => (await values.findOne({ _id: key }))?.value,
    ended,
    close: () => client.close(),
  };
}

/** Tries to connect without TLS. */
export async function connectPlainMongodb(machine: EngineMachine, options: ConnectOptions): Promise<void> {
  const client = openMongodb(targetOf(machine), options, { tls: false });
  try {
    await client.db("admin").command({ ping: 1 });
  } finally {
    await client.close();
  }
}
