import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "iovalkey";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import { engineSocket, platform, platformDatabase, secretFile } from "./layout.ts";
import { readEngineFile } from "../../os/engine-file.ts";

/** A connection of the platform over the Unix socket. */
export interface Session {
  call(command: string, ...args: readonly string[]): Promise<unknown>;
}

/**
 * Opens a session, runs the work and closes the session; an abort closes the connection without waiting. Throws
 * EngineBusy while a script blocks the engine. With `database: null` no database is selected, so that the session can
 * run the few commands that a busy engine accepts.
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
    return await work({ call: (command, ...args) => client.call(command, [...args]).catch(rethrowBusy) });
  } catch (error) {
    signal.throwIfAborted();
    return rethrowBusy(broken ?? error);
  } finally {
    signal.removeEventListener("abort", abort);
    client.disconnect();
  }
}

/**
 * Converts a BUSY error to EngineBusy. The error's message has the command that ends the script: SCRIPT KILL or
 * FUNCTION KILL.
 */
function rethrowBusy(error: unknown): never {
  if (!(error instanceof Error) || !error.message.startsWith("BUSY ")) throw error;
  const [kind, end] = error.message.includes("FUNCTION KILL")
    ? ["function", "FUNCTION KILL"]
    : ["script", "SCRIPT KILL"];
  const message = `A running ${kind} blocks all other commands. ${end} ends it. If that returns UNKILLABLE, the ${kind} has written: only a stop of the service ends it, which undoes its writes.`;
  throw new EngineBusy(message, { cause: error });
}

/** True for an error that the engine itself replied with. */
export function isEngineReply(error: unknown): boolean {
  return error instanceof EngineBusy || (error instanceof Error && error.name === "ReplyError");
}

const retryMs = 200;

/** Runs the work, and repeats it while a script blocks the engine. */
export async function retryWhileBusy<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof EngineBusy)) throw error;
      await sleep(retryMs, undefined, { signal });
    }
  }
}

/** Parses a reply to INFO: values by field name, such as `role` to `master`. */
export function parseInfo(text: string): Map<string, string> {
  const lines = text.split("\r\n").filter((line) => line.includes(":"));
  return new Map(lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1)]));
}
