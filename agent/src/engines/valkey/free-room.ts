import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Instance, RoomOnDisk } from "../engine-driver.ts";
import { appendDirectory } from "./backup/restore.ts";
import { parseInfo } from "./info.ts";
import { dataDirectory } from "./layout.ts";
import { hasLogGrown, isLogLarge, isRewriteDue, type LogOnDisk } from "./rewrite-due.ts";
import { withSession } from "./session.ts";

const withinMs = 2_000;
/** A rewrite that gave nothing is not begun again at once: it failed, or the data are larger than they look. */
const pauseMs = 10_000;
const gain = 0.9;
/** Of a large log that has not grown only the engine knows whether its data are still there. */
const askEveryMs = 1_000;
/** Snapshots that older settings had made, and that a replica got its data by: nothing reads them again. */
const snapshot = "dump.rdb";

/** Has the engine write its append-only file anew in time, and removes snapshots. Nothing happens while it does either. */
export function createFreeRoom(now: () => number) {
  let last: { readonly atMs: number; readonly logBytes: number } | undefined;
  let askedMs = Number.NEGATIVE_INFINITY;

  return async (instance: Instance, space: RoomOnDisk, signal: AbortSignal): Promise<void> => {
    const log = await logOnDisk(instance, space);
    if (last !== undefined && log.logBytes < last.logBytes * gain) last = undefined;
    const hasSnapshot = await isThere(join(dataDirectory(instance), snapshot));
    if (!isLogLarge(log) && !hasSnapshot) return;
    if (!hasLogGrown(log) && now() - askedMs < askEveryMs) return;
    askedMs = now();
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
    await withSession(instance, bounded, async (session) => {
      const info = parseInfo(String(await session.call("INFO", "memory", "persistence", "replication")));
      if (isAtWork(info)) return;
      if (hasSnapshot) await rm(join(dataDirectory(instance), snapshot), { force: true });
      const isRepeated = last !== undefined && now() - last.atMs < pauseMs;
      if (isRepeated || !isRewriteDue(log, Number(info.get("used_memory_dataset") ?? 0))) return;
      last = { atMs: now(), logBytes: log.logBytes };
      await session.call("BGREWRITEAOF");
    });
  };
}

/** Files of a save or a rewrite that was cut off; no engine may run. */
export async function removeLeftovers(instance: Instance): Promise<void> {
  const directory = dataDirectory(instance);
  const names = await readdir(directory).catch(() => []);
  for (const name of names.filter((each) => /^temp-.*\.(rdb|aof)$/.test(each)))
    await rm(join(directory, name), { force: true });
}

/** Does it write or read a file of its own right now? */
function isAtWork(info: ReadonlyMap<string, string>): boolean {
  const names = [
    "aof_rewrite_in_progress",
    "aof_rewrite_scheduled",
    "rdb_bgsave_in_progress",
    "loading",
    "async_loading",
  ];
  return [...names, "master_sync_in_progress"].some((name) => (info.get(name) ?? "0") !== "0");
}

async function logOnDisk(instance: Instance, { totalBytes, writableBytes }: RoomOnDisk): Promise<LogOnDisk> {
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

/** The engine removes files while they are counted. */
async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0;
}

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}
