import { buffer } from "node:stream/consumers";
import { BackupDamaged } from "@holdfast/common/backup/backup-reader.ts";
import { type OpenedLog, openLog } from "@holdfast/common/backup/log-object.ts";
import { logObject } from "@holdfast/common/backup/object-names.ts";
import { type ArchivedLogReader, firstObjectAfter } from "../engines/backup-facet.ts";
import type { RestoreJob } from "./job.ts";
import { settingsFrom } from "./log-settings.ts";
import type { JobContext } from "./job-context.ts";

const maxCached = 8;
const urlsAhead = 64;

/**
 * Reads the log objects of a restore as one sequence. Each must continue where the previous one ended; a missing one is
 * damage, never the end.
 *
 * `base`: position at which the restored base backup begins, usually after the start of the first object; undefined for
 * a base backup without a position.
 */
export function createArchiveReader(
  { location, logs, target }: Pick<RestoreJob, "location" | "logs" | "target">,
  base: string | undefined,
  { facet, store, urls, signal }: Pick<JobContext, "facet" | "store" | "urls" | "signal">,
  onObject: () => void,
): ArchivedLogReader | undefined {
  const runs = logs.filter(({ firstSequence, lastSequence }) => lastSequence >= firstSequence);
  const count = runs.reduce((sum, { firstSequence, lastSequence }) => sum + lastSequence - firstSequence + 1, 0);
  if (count === 0) return undefined;
  const opened = new Map<number, Promise<OpenedLog>>();
  /** Positions of all objects opened so far, including those no longer in memory. */
  const ranges = new Map<number, { readonly from: string; readonly to: string }>();

  function locate(index: number) {
    let offset = index;
    for (const run of runs) {
      const length = run.lastSequence - run.firstSequence + 1;
      if (offset < length) return { run, sequence: run.firstSequence + offset };
      offset -= length;
    }
    throw new Error(`there is no log object ${index}`);
  }

  const objectAt = (index: number) => {
    const { run, sequence } = locate(index);
    return logObject({ service: location.service, term: run.term }, sequence);
  };

  /** Indexes of the objects whose URLs were requested last. */
  let prefetched = { from: 0, to: 0 };
  function prefetch(index: number): void {
    if (index >= prefetched.from && index < prefetched.to) return;
    prefetched = { from: index, to: Math.min(index + urlsAhead, count) };
    const keys = Array.from({ length: prefetched.to - index }, (_, i) => objectAt(index + i));
    urls.prefetch("GET", keys, signal);
  }

  async function fetch(index: number): Promise<OpenedLog> {
    const { run, sequence } = locate(index);
    prefetch(index);
    const name = objectAt(index);
    const stored = await store.get(name, signal);
    if (stored === undefined) throw new BackupDamaged(`${name} is not in the store`, { object: name });
    const keyOf = (id: string) => {
      const key = run.keys.find((each) => each.id === id);
      return key && Buffer.from(key.secret, "base64");
    };
    const log = openLog(await buffer(stored), { service: location.service, term: run.term, sequence }, keyOf);
    checkAdjacent(index, log);
    onObject();
    return log;
  }

  function checkAdjacent(index: number, { header: { from, to } }: OpenedLog): void {
    const before = ranges.get(index - 1);
    const after = ranges.get(index + 1);
    const object = objectAt(index);
    if (before !== undefined && before.to !== from)
      throw new BackupDamaged(`${object} begins at ${from}, the one before it ends at ${before.to}`, { object });
    if (after !== undefined && after.from !== to)
      throw new BackupDamaged(`${object} ends at ${to}, the next one begins at ${after.from}`, { object });
    ranges.set(index, { from, to });
  }

  function at(index: number): Promise<OpenedLog> {
    const cached = opened.get(index);
    if (cached !== undefined) return cached;
    const opening = fetch(index);
    opening.catch(() => opened.delete(index));
    opened.set(index, opening);
    for (const old of [...opened.keys()].slice(0, -maxCached)) opened.delete(old);
    return opening;
  }

  /** Index of the object from which on nothing is replayed; the number of objects if all of them are. */
  async function replayedCount(): Promise<number> {
    return target.kind === "time" ? (await firstObjectAfter({ count, at }, new Date(target.timeMs))) + 1 : count;
  }

  /**
   * Greatest values of the settings under which the replayed log was written: from the base on, up to the object that
   * has the target. The header of a run's last object has the settings of the run up to there.
   */
  async function settings(): Promise<Readonly<Record<string, number>>> {
    const from = base ?? (await at(0)).header.from;
    const replayed = await replayedCount();
    const greatest = new Map<string, number>();
    let end = -1;
    for (const { firstSequence, lastSequence } of runs) {
      if (end + 1 >= replayed) break;
      end += lastSequence - firstSequence + 1;
      const { header } = await at(Math.min(end, replayed - 1));
      for (const { values } of settingsFrom(header.settings ?? [], from, facet.log))
        for (const [name, value] of Object.entries(values))
          greatest.set(name, Math.max(greatest.get(name) ?? 0, value));
    }
    return Object.fromEntries(greatest);
  }

  return { count, at, settings };
}
