import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Instance, WritableSpace } from "../engine-driver.ts";
import { parseInfo, withSession } from "./session.ts";
import { appendDirectory, dataDirectory } from "./layout.ts";

const withinMs = 2_000;
/** Pause after a rewrite that freed nothing: it failed, or the data are larger than they seem. */
const pauseMs = 10_000;
const gain = 0.9;
/** Interval of queries of the engine about a large log that has not grown: it may consist of deleted data. */
const queryIntervalMs = 1_000;
/** A snapshot that earlier settings wrote or that a replica received; nothing reads it. */
const snapshot = "dump.rdb";

/**
 * Starts a rewrite of the append-only file when one is due (`isRewriteDue`), and removes unused snapshots. Does nothing
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

/** Sizes of the append-only file and its disk, in bytes. */
interface LogOnDisk {
  /** Size of all files of the log, including files that the engine is about to remove. */
  readonly logBytes: number;
  /** Base files: the contents at the last rewrite. */
  readonly baseBytes: number;
  readonly totalBytes: number;
  /** Free for any writer, without the reserve. */
  readonly freeBytes: number;
}

/** Share of the disk below which the engine decides about rewrites itself, unless the disk is nearly full. */
const smallShare = 1 / 8;
/** Share of free disk space below which a rewrite of any gain is due. */
const tightShare = 1 / 10;
/** Minimum gain, as a share of the disk or a factor of the base, that is worth a rewrite. */
const gainShare = 1 / 32;
const tightGainShare = 1 / 128;
const gainOfBase = 1.05;
/** Factor for a rewritten log that is larger than the data in memory, and for writes during the rewrite. */
const growthFactor = 1.1;
/** Share of the disk that the old and the new log together may reach, below the level that blocks writes. */
const usableShare = 0.92;

const isTight = ({ freeBytes, totalBytes }: LogOnDisk) => freeBytes < totalBytes * tightShare;

/** True if the log is large enough for a rewrite, for data of any size. */
function isLogLarge(log: LogOnDisk): boolean {
  return log.logBytes >= log.totalBytes * (isTight(log) ? tightGainShare : smallShare);
}

/** True if the log has grown so much that a rewrite gains something even if no data were deleted. */
function hasLogGrown({ logBytes, baseBytes, totalBytes }: LogOnDisk): boolean {
  return logBytes - baseBytes >= totalBytes * gainShare;
}

/**
 * True if the log must be rewritten now. Valkey's own rule (`auto-aof-rewrite-percentage`) counts from the size
 * after the last rewrite, including writes during that rewrite, so under a fast writer the limit doubles until the disk
 * is full. This rule counts from the size of the data: rewrite at twice that size, or as long as the new log fits
 * beside the old one, and for any gain on a disk that is nearly full.
 */
export function isRewriteDue(log: LogOnDisk, dataBytes: number): boolean {
  const { logBytes, baseBytes, totalBytes, freeBytes } = log;
  if (!isLogLarge(log) || dataBytes * growthFactor > freeBytes) return false;
  const minimumGain = totalBytes * (isTight(log) ? tightGainShare : gainShare);
  if (logBytes - dataBytes < minimumGain) return false;
  // A log that was just rewritten has nothing to gain while the data are unchanged.
  if (logBytes < baseBytes * gainOfBase && dataBytes > baseBytes / 2) return false;
  if (isTight(log)) return true;
  const maxFittingBytes = usableShare * totalBytes - growthFactor * dataBytes;
  const limit = Math.min(
    Math.max(2 * dataBytes, totalBytes * smallShare),
    Math.max(maxFittingBytes * 0.9, dataBytes + minimumGain),
  );
  return logBytes >= limit;
}
