import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../engine-driver.ts";
import { createAllowedAddresses } from "../../allowed-addresses.ts";
import { poolerConsoleClient } from "../platform-client.ts";
import { codeOf } from "../session.ts";

/** A pooler that was just started listens within this time. */
const startMs = 2_000;
const lookEveryMs = 20;

/** Resolves when new clients are judged by the files on disk, and those that these forbid are gone. */
export async function readFilesAgain(instance: Instance, signal: AbortSignal): Promise<void> {
  for (let leftMs = startMs; ; leftMs -= lookEveryMs) {
    try {
      await withConsole(instance, signal, async (order) => {
        await order("RELOAD");
        await endForbidden(instance, order);
      });
      return;
    } catch (error) {
      if (leftMs <= 0 || !["ENOENT", "ECONNREFUSED"].includes(codeOf(error))) throw error;
      await sleep(lookEveryMs, undefined, { signal });
    }
  }
}

/** Ends every client from an address that the list does not have. */
export async function endForbiddenClients(instance: Instance, signal: AbortSignal): Promise<void> {
  await withConsole(instance, signal, (order) => endForbidden(instance, order));
}

type Order = (line: string) => Promise<Record<string, string>[]>;

async function endForbidden({ spec }: Instance, order: Order): Promise<void> {
  const isAllowed = createAllowedAddresses(spec.allowedCidrs);
  for (const { addr = "", id = "" } of await order("SHOW CLIENTS")) {
    // The platform's own come through the socket.
    if (addr === "unix" || isAllowed(addr)) continue;
    // It may have left by itself.
    await order(`KILL_CLIENT ${id}`).catch(() => undefined);
  }
}

/** The pooler's own console, through its socket. */
async function withConsole<T>(instance: Instance, signal: AbortSignal, work: (order: Order) => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const client = poolerConsoleClient(instance);
  client.on("error", () => undefined);
  const abort = () => client.connection.stream.destroy(new Error("aborted"));
  signal.addEventListener("abort", abort, { once: true });
  try {
    await client.connect();
    return await work(async (line) => (await client.query<Record<string, string>>(line)).rows);
  } finally {
    signal.removeEventListener("abort", abort);
    client.end().catch(() => client.connection.stream.destroy());
  }
}
