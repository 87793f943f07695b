import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "iovalkey";
import type { Examination, Finding } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../instance.ts";
import { appendDirectory, baseFile, platformDatabase } from "../layout.ts";

const pollIntervalMs = 100;

/** Loads the snapshot in a private engine and compares the number of loaded keys with the number in the snapshot. */
export async function examine(
  { run, pipe }: EngineDeps,
  instance: Instance,
  { scratch }: Examination,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { software } = instance.paths;
  const directory = appendDirectory(instance);
  const printed = await run([join(software, "bin/valkey-check-rdb"), join(directory, baseFile)], { signal });
  const count = (label: string) => Number(new RegExp(`(\\d+) ${label}$`, "m").exec(printed)?.[1] ?? Number.NaN);
  const [keys, expiring] = [count("keys read"), count("expires")];
  await rm(scratch, { recursive: true, force: true });
  await mkdir(scratch, { recursive: true, mode: 0o700 });
  const socket = join(scratch, "valkey.sock");
  const finished = new AbortController();
  // The engine only reads the snapshot and writes nothing.
  const settings = {
    port: "0",
    unixsocket: socket,
    unixsocketperm: "700",
    dir: directory,
    dbfilename: baseFile,
    appendonly: "no",
    save: "",
    databases: String(platformDatabase + 1),
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const server = pipe([join(software, "bin/valkey-server"), ...flags], {
    signal: AbortSignal.any([signal, finished.signal]),
  });
  const ended = drain(server.output);
  try {
    const loaded = await Promise.race([
      countKeys(socket, AbortSignal.any([signal, finished.signal])),
      ended.then(() => Number.NaN),
    ]);
    // Keys that expired since the backup are not loaded.
    const passed = loaded <= keys && loaded >= keys - expiring;
    const times = expiring === 0 ? "" : `; ${expiring} of them may have expired`;
    return [{ name: "contents", passed, detail: `${loaded} of ${keys} keys were loaded${times}.` }];
  } finally {
    finished.abort();
    await ended.catch(() => undefined);
    await rm(scratch, { recursive: true, force: true });
  }
}

async function drain(output: AsyncIterable<Buffer>): Promise<void> {
  for await (const _ of output);
}

/** Number of keys in all databases, once the engine has loaded everything. */
async function countKeys(socket: string, signal: AbortSignal): Promise<number> {
  for (;;) {
    const client = new Redis({
      path: socket,
      lazyConnect: true,
      enableReadyCheck: false,
      maxRetriesPerRequest: 0,
      retryStrategy: () => null,
    });
    client.on("error", () => undefined);
    try {
      await client.connect();
      const info = await client.info();
      if (/^loading:0/m.test(info)) {
        const counts = [...info.matchAll(/^db\d+:keys=(\d+)/gm)].map(([, keys]) => Number(keys));
        return counts.reduce((sum, keys) => sum + keys, 0);
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof Error)) throw error;
    } finally {
      client.disconnect();
    }
    await sleep(pollIntervalMs, undefined, { signal });
  }
}
