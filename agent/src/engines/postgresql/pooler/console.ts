import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../engine-driver.ts";
import { createAllowedAddresses } from "../../addresses.ts";
import { poolerConsoleClient } from "../platform-client.ts";
import { codeOf } from "../session.ts";

/** Time for a starting pooler to listen. */
const startMs = 2_000;
const pollIntervalMs = 20;

/** Resolves when PgBouncer has reloaded its files and the clients that they forbid were disconnected. */
export async function reloadFiles(instance: Instance, signal: AbortSignal): Promise<void> {
  for (let remainingMs = startMs; ; remainingMs -= pollIntervalMs) {
    try {
      await withConsole(instance, signal, async (run) => {
        await run("RELOAD");
        await endForbidden(instance, run);
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
  for (const { addr = "", id = "" } of await run("SHOW CLIENTS")) {
    // The platform's own clients use the socket.
    if (addr === "unix" || isAllowed(addr)) continue;
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
