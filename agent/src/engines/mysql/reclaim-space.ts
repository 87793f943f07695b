import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Instance, WritableSpace } from "../engine-driver.ts";
import { readArchiveRow } from "./backup/archive-state.ts";
import { listFiles, newestFileAfter } from "./backup/binlog-files.ts";
import { dataDirectory } from "./layout.ts";
import { type Session, withSession } from "./session.ts";

/** Share of free disk space below which archived binary logs are removed at any age. */
const tightShare = 1 / 6;
const tightPauseMs = 10_000;
const pauseMs = 300_000;
/** Age up to which replicas find the log that they missed, in milliseconds. */
const retainedMs = 86_400_000;

/**
 * Creates a function that removes binary logs: those older than a day, and on a nearly full disk all except the current
 * one. A file with a transaction that is not archived yet stays in either case. `now` is a monotonic clock in
 * milliseconds. The function never throws: if it gains no space, the disk guard blocks writes.
 */
export function createSpaceReclaimer(now: () => number) {
  let ranAtMs = Number.NEGATIVE_INFINITY;
  return async (
    instance: Instance,
    { totalBytes, writableBytes }: WritableSpace,
    signal: AbortSignal,
  ): Promise<void> => {
    const isTight = writableBytes < totalBytes * tightShare;
    if (now() < ranAtMs + (isTight ? tightPauseMs : pauseMs)) return;
    ranAtMs = now();
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(tightPauseMs)]);
    await withSession(instance, bounded, (session) => removeLogs(session, instance, isTight)).catch(() => undefined);
  };
}

async function removeLogs(session: Session, instance: Instance, isTight: boolean): Promise<void> {
  const names = await listFiles(session);
  const first = await firstRequired(session, instance, names);
  if (first === undefined) return;
  let removed = names.slice(0, names.indexOf(first));
  if (!isTight) {
    const old = await Promise.all(removed.map((name) => isOlder(join(dataDirectory(instance), name))));
    removed = old.includes(false) ? removed.slice(0, old.indexOf(false)) : removed;
  }
  const next = names[removed.length];
  if (removed.length > 0 && next !== undefined) await session.rows("PURGE BINARY LOGS TO ?", [next]);
}

/** The first file that may not be removed; undefined if all have to stay. */
async function firstRequired(
  session: Session,
  { spec }: Instance,
  names: readonly string[],
): Promise<string | undefined> {
  if (names.length < 2) return undefined;
  const archived = await readArchiveRow(session);
  if (archived !== undefined) return newestFileAfter(session, archived.gtids);
  return spec.archive === undefined ? names.at(-1) : undefined;
}

async function isOlder(path: string): Promise<boolean> {
  return Date.now() - (await stat(path)).mtimeMs > retainedMs;
}
