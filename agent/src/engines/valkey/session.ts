import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "iovalkey";
import { readEngineFile } from "../../os/engine-file.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import { engineSocket, platform, platformDatabase, secretFile } from "./layout.ts";

/** A connection of the platform over the Unix socket. */
export interface Session {
  call(command: string, ...args: readonly string[]): Promise<unknown>;
}

/**
 * Opens a session, runs the work and closes it again; an abort ends the connection at once. Throws EngineBusy while a script keeps
 * the engine from anything else. `database`: null for one that takes what a busy engine takes.
 */
export async function withSession<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
  { database = platformDatabase }: { readonly database?: number | null } = {},
): Promise<T> {
  signal.throwIfAborted();
  const client = new Redis({
    path: engineSocket(instance),
    username: platform,
    password: await readEngineFile(secretFile(instance)),
    ...(database !== null && { db: database }),
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
    return await work({ call: (command, ...args) => client.call(command, [...args]).catch(rethrown) });
  } catch (error) {
    signal.throwIfAborted();
    return rethrown(broken ?? error);
  } finally {
    signal.removeEventListener("abort", abort);
    client.disconnect();
  }
}

/** BUSY names the one command that ends what runs: SCRIPT KILL, or FUNCTION KILL. */
function rethrown(error: unknown): never {
  if (!(error instanceof Error) || !error.message.startsWith("BUSY ")) throw error;
  const [runs, end] = error.message.includes("FUNCTION KILL")
    ? ["function", "FUNCTION KILL"]
    : ["script", "SCRIPT KILL"];
  const words = `A ${runs} runs, and nobody else gets an answer until it ends. ${end} ends it; where that answers UNKILLABLE, it has written, and only a stop of the service ends it, which undoes what it wrote.`;
  throw new EngineBusy(words, { cause: error });
}

/** Is this what the engine itself answered? */
export function isAnswer(error: unknown): boolean {
  return error instanceof EngineBusy || (error instanceof Error && error.name === "ReplyError");
}

const freeEveryMs = 200;

/** The work's result, once no script is in its way. */
export async function untilFree<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof EngineBusy)) throw error;
      await sleep(freeEveryMs, undefined, { signal });
    }
  }
}
