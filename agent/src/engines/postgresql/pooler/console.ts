import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../engine-driver.ts";
import { createAllowedAddresses } from "../../addresses.ts";
import { poolerConsoleClient } from "../platform-client.ts";
import { codeOf } from "../session.ts";

/** Time for a starting pooler to listen. */
const startMs = 2_000;
const pollIntervalMs = 20;

/**
 * Resolves when PgBouncer has reloaded its files and the clients that they forbid were disconnected; with `renew` all
 * of its clients, and later ones get the engine's settings of now.
 *
 * From 1.26 on PgBouncer restores every setting that the engine reports to what it was when the client connected, and
 * greets new clients with the values of its pool's first session.
 */
export async function reloadFiles(
  instance: Instance,
  signal: AbortSignal,
  { renew }: { readonly renew: boolean },
): Promise<void> {
  for (let remainingMs = startMs; ; remainingMs -= pollIntervalMs) {
    try {
      await withConsole(instance, signal, async (run) => {
        await run("RELOAD");
        if (renew) await run("RECONNECT");
        await (renew ? endClients(run, () => true) : endForbidden(instance, run));
      });
      return;
    } catch (error) {
      if (remainingMs <= 0 || !["ENOENT", "ECONNREFUSED"].includes(codeOf(error))) throw error;
      await sleep(pollIntervalMs, undefined, { signal });
    }
  }
}

/** Disconnects every client from an address that the allow-list does not contain. */
export async function endForbiddenClients(instance: Instance, signal: AbortSignal): Promise<void> {
  await withConsole(instance, signal, (run) => endForbidden(instance, run));
}

type RunCommand = (line: string) => Promise<Record<string, string>[]>;

async function endForbidden({ spec }: Instance, run: RunCommand): Promise<void> {
  const isAllowed = createAllowedAddresses(spec.allowedCidrs);
  await endClients(run, (address) => !isAllowed(address));
}

/** Disconnects clients by their address, except the platform's own, which use the socket. */
async function endClients(run: RunCommand, isEnded: (address: string) => boolean): Promise<void> {
  for (const { addr = "", id = "" } of await run("SHOW CLIENTS")) {
    if (addr === "unix" || !isEnded(addr)) continue;
    // The client may have disconnected already.
    await run(`KILL_CLIENT ${id}`).catch(() => undefined);
  }
}

/** Runs the work with PgBouncer's admin console, over its socket. */
async function withConsole<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (run: RunCommand) => Promise<T>,
): Promise<T> {
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
