import type { ConformanceClient, ConnectOptions } from "../conformance-subject.ts";
import { connect as connectTcp } from "node:net";
import { createInterface } from "node:readline";
import { connect as connectTls } from "node:tls";
import type { EngineEndpoint } from "../engine-clients.ts";

/** A user's session with the fixture cluster. */
export async function clusterClient(
  machine: EngineEndpoint,
  options: ConnectOptions & { readonly plain?: boolean },
): Promise<ConformanceClient> {
  const { address, port } = machine.instance.spec;
  const tcp = connectTcp({ host: address, port, localAddress: options.from ?? address });
  tcp.on("error", () => undefined);
  const name = options.serverName ?? machine.serverName;
  const named = /^[\d.]+$/.test(name) ? {} : { servername: name };
  const socket = options.plain ? tcp : connectTls({ socket: tcp, ca: machine.ca, host: name, ...named });
  const pending: { resolve(value: unknown): void; reject(error: Error): void }[] = [];
  let broken = new Error("the connection is closed");
  socket.on("error", (error) => {
    broken = error;
  });
  const ended = new Promise<void>((resolve) => {
    socket.once("close", () => {
      for (const { reject } of pending.splice(0)) reject(broken);
      resolve();
    });
  });
  const lines = createInterface({ input: socket });
  // The reader repeats the socket's error, which is handled above.
  lines.on("error", () => undefined);
  lines.on("line", (line) => {
    const reply = JSON.parse(line) as { ok: unknown } | { error: string };
    if ("error" in reply) pending.shift()?.reject(new Error(reply.error));
    else pending.shift()?.resolve(reply.ok);
  });
  const call = (command: object) =>
    new Promise<unknown>((resolve, reject) => {
      if (socket.destroyed) return reject(broken);
      pending.push({ resolve, reject });
      socket.write(`${JSON.stringify(command)}\n`);
    });
  const close = async () => {
    socket.destroy();
    await ended;
  };
  try {
    await call({ op: "signIn", username: options.user, password: options.password });
  } catch (error) {
    await close();
    throw error;
  }
  return {
    write: async (key, value) => void (await call({ op: "set", key, value })),
    read: async (key) => ((await call({ op: "get", key })) as string | null) ?? undefined,
    ended,
    close,
  };
}
