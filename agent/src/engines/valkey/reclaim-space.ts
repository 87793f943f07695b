import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Instance, WritableSpace } from "../engine-driver.ts";
import { parseInfo, withSession } from "./session.ts";
import { appendDirectory, dataDirectory } from "./layout.ts";
import { hasLogGrown, isLogLarge, isRewriteDue, type LogOnDisk } from "./rewrite-due.ts";

const withinMs = 2_000;
/** Pause after a rewrite that freed nothing: it failed, or the data are larger than they seem. */
const pauseMs = 10_000;
const gain = 0.9;
/** Interval of queries of the engine about a large log that has not grown: it may consist of deleted data. */
const queryIntervalMs = 1_000;
/** A snapshot that earlier settings wrote or that a replica received; nothing reads it. */
const snapshot = "dump.rdb";

/**
 * Starts a rewrite of the append-only file when one is due (rewrite-due.ts), and removes unused snapshots. Does nothing
 * while the engine writes or reads a file.
 */
export function createSpaceReclaimer(now: () => number) {
  let last: { readonly atMs: number; readonly logBytes: number } | undefined;
  let queriedMs = Number.NEGATIVE_INFINITY;

  return async (instance: Instance, space: WritableSpace, signal: AbortSignal): Promise<void> => {
    const log = await logOnDisk(instance, space);
    if (last !== undefined && log.logBytes < last.logBytes * gain) last = undefined;
    const hasSnapshot = await exists(join(dataDirectory(instance), snapshot));
    if (!isLogLarge(log) && !hasSnapshot) return;
    if (!hasLogGrown(log) && now() - queriedMs < queryIntervalMs) return;
    queriedMs = now();
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
    await withSession(instance, bounded, async (session) => {
      const info = parseInfo(String(await session.call("INFO", "memory", "persistence", "replication")));
      if (isWritingFiles(info)) return;
      if (hasSnapshot) await rm(join(dataDirectory(instance), snapshot), { force: true });
      const isRepeated = last !== undefined && now() - last.atMs < pauseMs;
      if (isRepeated || !isRewriteDue(log, Number(info.get("used_memory_dataset") ?? 0))) return;
      last = { atMs: now(), logBytes: log.logBytes };
      await session.call("BGREWRITEAOF");
    });
  };
}

/** Removes temporary files of an interrupted save or rewrite. The engine must be stopped. */
export async function removeTemporaryFiles(instance: Instance): Promise<void> {
  const directory = dataDirectory(instance);
  const names = await readdir(directory).catch(() => []);
  for (const name of names.filter((each) => /^temp-.*\.(rdb|aof)$/.test(each)))
    await rm(join(directory, name), { force: true });
}

/** True while the engine writes or reads one of its files. */
function isWritingFiles(info: ReadonlyMap<string, string>): boolean {
  const names = [
    "aof_rewrite_in_progress",
    "aof_rewrite_scheduled",
    "rdb_bgsave_in_progress",
    "loading",
    "async_loading",
  ];
  return [...names, "master_sync_in_progress"].some((name) => (info.get(name) ?? "0") !== "0");
}

async function logOnDisk(instance: Instance, { totalBytes, writableBytes }: WritableSpace): Promise<LogOnDisk> {
  const directory = appendDirectory(instance);
  const sizes = await Promise.all(
    (await readdir(directory).catch(() => [])).map(async (name) => ({
      name,
      bytes: await sizeOf(join(directory, name)),
    })),
  );
  const sum = (some: typeof sizes) => some.reduce((all, { bytes }) => all + bytes, 0);
  const baseBytes = sum(sizes.filter(({ name }) => name.includes(".base.")));
  return { logBytes: sum(sizes), baseBytes, totalBytes, freeBytes: writableBytes };
}

/** Size of a file in bytes; 0 if the engine has removed it. */
async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
