import { createHash, createHmac, pbkdf2Sync } from "node:crypto";
import { connect as connectTcp, Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { ConformanceClient, ConnectOptions } from "./conformance-subject.ts";
import pg from "pg";

/** Address of an engine, and the authority and name that its certificate is checked by. */
export interface EngineEndpoint {
  /** PEM of the authority to trust. */
  readonly ca: string;
  /** Name that the certificate must have. */
  readonly serverName: string;
  readonly instance: { readonly spec: { readonly address: string; readonly port: number } };
}

/** RFC 5803 verifier with a fixed salt, so that a password always has the same one. */
export function scramVerifier(password: string): string {
  const salt = Buffer.from("a fixed salt 16B");
  const salted = pbkdf2Sync(password, salt, 4096, 32, "sha256");
  const clientKey = createHmac("sha256", salted).update("Client Key").digest();
  const stored = createHash("sha256").update(clientKey).digest("base64");
  const server = createHmac("sha256", salted).update("Server Key").digest("base64");
  return `SCRAM-SHA-256$4096:${salt.toString("base64")}$${stored}:${server}`;
}

/** Valkey's hash of a password. */
export function valkeyVerifier(password: string): string {
  return `#${createHash("sha256").update(password).digest("hex")}`;
}

/** A user's session; the caller ends it. */
export async function connectPostgresql(
  machine: EngineEndpoint,
  options: ConnectOptions & { readonly database?: string; readonly plain?: boolean; readonly options?: string },
): Promise<pg.Client> {
  const { address, port } = machine.instance.spec;
  const { from = address } = options;
  const servername = options.serverName ?? machine.serverName;
  const client = new pg.Client({
    user: options.user,
    password: options.password,
    database: options.database ?? "defaultdb",
    host: address,
    port,
    ssl: options.plain === true ? false : { ca: machine.ca, servername },
    stream: () => boundSocket(from),
    ...(options.options === undefined ? {} : { options: options.options }),
  });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** A socket whose connections come from this address. */
function boundSocket(from: string): Socket {
  const socket = new Socket();
  const connect = socket.connect.bind(socket) as (options: object) => Socket;
  socket.connect = ((port: number, host: string) => connect({ port, host, localAddress: from })) as Socket["connect"];
  return socket;
}

export async function postgresqlClient(machine: EngineEndpoint, options: ConnectOptions): Promise<ConformanceClient> {
  const client = await connectPostgresql(machine, options);
  const over = new Promise<void>((resolve) => client.once("end", () => resolve()));
  if (options.user === "app_user") {
    await client.query("CREATE TABLE IF NOT EXISTS kv (key text PRIMARY KEY, value text)");
  }
  return {
    async write(key, value) {
      await client.query("INSERT INTO kv VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = $2", [key, value]);
    },
    async read(key) {
      const { rows } = await client.query<{ value: string }>("SELECT value FROM kv WHERE key = $1", [key]);
      return rows[0]?.value;
    },
    ended: over,
    close: () => client.end(),
  };
}

/** A minimal RESP client, so that a test sees the bytes of the protocol; it checks TLS as a user's client does. */
export async function connectValkey(
  machine: EngineEndpoint,
  options: ConnectOptions & { readonly plain?: boolean },
): Promise<{ call(...words: string[]): Promise<unknown>; readonly ended: Promise<void>; close(): Promise<void> }> {
  const { address, port } = machine.instance.spec;
  const tcp = connectTcp({ host: address, port, localAddress: options.from ?? address });
  tcp.on("error", () => undefined);
  const servername = options.serverName ?? machine.serverName;
  const socket =
    options.plain === true
      ? tcp
      : connectTls({
          socket: tcp,
          ca: machine.ca,
          host: servername,
          ...(/^[\d.]+$/.test(servername) ? {} : { servername }),
        });
  let buffer = "";
  let failed: Error | undefined;
  const waiting: { resolve(value: unknown): void; reject(error: Error): void }[] = [];
  const ended = new Promise<void>((resolve) => {
    socket.once("close", () => {
      for (const { reject } of waiting.splice(0)) reject(failed ?? new Error("connection closed"));
      resolve();
    });
  });
  socket.on("error", (error) => {
    failed = error;
  });
  socket.setEncoding("utf8").on("data", (text: string) => {
    buffer += text;
    for (let parsed = parse(buffer, 0); parsed !== undefined; parsed = parse(buffer, 0)) {
      buffer = buffer.slice(parsed.next);
      const { value } = parsed;
      if (value instanceof Error) waiting.shift()?.reject(value);
      else waiting.shift()?.resolve(value);
    }
  });
  const call = (...words: string[]) =>
    new Promise<unknown>((resolve, reject) => {
      if (socket.destroyed) return reject(failed ?? new Error("connection closed"));
      waiting.push({ resolve, reject });
      const bulks = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
      socket.write(`*${words.length}\r\n${bulks.join("")}`);
    });
  const close = async () => {
    socket.destroy();
    await ended;
  };
  try {
    await call("AUTH", options.user, options.password);
  } catch (error) {
    await close();
    throw error;
  }
  return { call, ended, close };
}

export async function valkeyClient(machine: EngineEndpoint, options: ConnectOptions): Promise<ConformanceClient> {
  const { call, ended, close } = await connectValkey(machine, options);
  return {
    async write(key, value) {
      await call("SET", key, value);
    },
    async read(key) {
      return ((await call("GET", key)) as string | null) ?? undefined;
    },
    async flush() {
      await call("WAITAOF", "1", "0", "0");
    },
    ended,
    close,
  };
}

/** One RESP2 value of ASCII text; undefined while it is incomplete. */
function parse(text: string, at: number): { value: unknown; next: number } | undefined {
  const end = text.indexOf("\r\n", at);
  if (end < 0) return undefined;
  const head = text.slice(at + 1, end);
  const next = end + 2;
  switch (text[at]) {
    case "+":
      return { value: head, next };
    case "-":
      return { value: new Error(head), next };
    case ":":
      return { value: Number(head), next };
    case "$": {
      const length = Number(head);
      if (length < 0) return { value: null, next };
      if (text.length < next + length + 2) return undefined;
      return { value: text.slice(next, next + length), next: next + length + 2 };
    }
    default: {
      const values: unknown[] = [];
      let position = next;
      for (let index = 0; index < Number(head); index++) {
        const item = parse(text, position);
        if (item === undefined) return undefined;
        values.push(item.value);
        position = item.next;
      }
      return { value: values, next: position };
    }
  }
}
