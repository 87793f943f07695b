import { Redis } from "iovalkey";
import type { Instance } from "../engine-driver.ts";
import { readEngineFile } from "../../os/engine-file.ts";
import { engineSocket, platform, platformDatabase, secretFile } from "./layout.ts";

/** A connection of the platform over the Unix socket. */
export interface Session {
  call(command: string, ...args: readonly string[]): Promise<unknown>;
}

/** Opens a session, runs the work and closes it again; an abort ends the connection at once. */
export async function withSession<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  const client = new Redis({
    path: engineSocket(instance),
    username: platform,
    password: await readEngineFile(secretFile(instance)),
    db: platformDatabase,
    lazyConnect: true,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let broken: Error | undefined;
  client.on("error", (error: Error) => {
    broken = error;
  });
  const abort = () => client.disconnect();
  signal.addEventListener("abort", abort, { once: true });
  try {
    await client.connect();
    return await work({ call: (command, ...args) => client.call(command, [...args]) });
  } catch (error) {
    signal.throwIfAborted();
    throw broken ?? error;
  } finally {
    signal.removeEventListener("abort", abort);
    client.disconnect();
  }
}
