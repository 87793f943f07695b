import { buffer } from "node:stream/consumers";
import { BackupDamaged } from "@holdfast/common/backup/backup-reader.ts";
import { type OpenedLog, openLog } from "@holdfast/common/backup/log-object.ts";
import { logObject } from "@holdfast/common/backup/object-names.ts";
import type { LogReader } from "../engines/backup-facet.ts";
import type { RestoreJob } from "./job.ts";
import { settingsFrom } from "./log-settings.ts";
import type { JobSurroundings } from "./surroundings.ts";

const kept = 8;
const urlsAhead = 64;

/**
 * The logs of a restore as one row of objects. Each is opened whole and must go on where the one before it ended; one that is
 * missing is damage, never the end.
 */
export function createArchiveReader(
  { place, logs }: Pick<RestoreJob, "place" | "logs">,
  { facet, store, purse, signal }: Pick<JobSurroundings, "facet" | "store" | "purse" | "signal">,
  onObject: () => void,
): LogReader | undefined {
  const runs = logs.filter(({ firstSequence, lastSequence }) => lastSequence >= firstSequence);
  const count = runs.reduce((sum, { firstSequence, lastSequence }) => sum + lastSequence - firstSequence + 1, 0);
  if (count === 0) return undefined;
  const opened = new Map<number, Promise<OpenedLog>>();
  /** Ends of all objects that were opened, also of those that are not in memory any more. */
  const ranges = new Map<number, { readonly from: string; readonly to: string }>();

  function placeOf(index: number) {
    let left = index;
    for (const run of runs) {
      const length = run.lastSequence - run.firstSequence + 1;
      if (left < length) return { run, sequence: run.firstSequence + left };
      left -= length;
    }
    throw new Error(`there is no log object ${index}`);
  }

  const objectAt = (index: number) => {
    const { run, sequence } = placeOf(index);
    return logObject({ service: place.service, term: run.term }, sequence);
  };

  /** Objects whose URLs were asked for last. */
  let asked = { from: 0, to: 0 };
  function askAhead(index: number): void {
    if (index >= asked.from && index < asked.to) return;
    asked = { from: index, to: Math.min(index + urlsAhead, count) };
    const keys = Array.from({ length: asked.to - index }, (_, i) => objectAt(index + i));
    purse.fetchAhead("GET", keys, signal);
  }

  async function fetch(index: number): Promise<OpenedLog> {
    const { run, sequence } = placeOf(index);
    askAhead(index);
    const name = objectAt(index);
    const stored = await store.get(name, signal);
    if (stored === undefined) throw new BackupDamaged(`${name} is not in the store`);
    const keyOf = (id: string) => {
      const key = run.keys.find((each) => each.id === id);
      return key && Buffer.from(key.secret, "base64");
    };
    const log = openLog(await buffer(stored), { service: place.service, term: run.term, sequence }, keyOf);
    checkNeighbours(index, log);
    onObject();
    return log;
  }

  function checkNeighbours(index: number, { header: { from, to } }: OpenedLog): void {
    const before = ranges.get(index - 1);
    const after = ranges.get(index + 1);
    if (before !== undefined && before.to !== from) {
      throw new BackupDamaged(`${objectAt(index)} begins at ${from}, the one before it ends at ${before.to}`);
    }
    if (after !== undefined && after.from !== to) {
      throw new BackupDamaged(`${objectAt(index)} ends at ${to}, the next one begins at ${after.from}`);
    }
    ranges.set(index, { from, to });
  }

  function at(index: number): Promise<OpenedLog> {
    const known = opened.get(index);
    if (known !== undefined) return known;
    const opening = fetch(index);
    opening.catch(() => opened.delete(index));
    opened.set(index, opening);
    for (const old of [...opened.keys()].slice(0, -kept)) opened.delete(old);
    return opening;
  }

  /** By the header of each run's last object, which has those of all before it. */
  async function settings(): Promise<Readonly<Record<string, number>>> {
    const { from } = (await at(0)).header;
    const greatest = new Map<string, number>();
    let end = -1;
    for (const { firstSequence, lastSequence } of runs) {
      end += lastSequence - firstSequence + 1;
      const { header } = await at(end);
      for (const { values } of settingsFrom(header.settings ?? [], from, facet.log))
        for (const [name, value] of Object.entries(values))
          greatest.set(name, Math.max(greatest.get(name) ?? 0, value));
    }
    return Object.fromEntries(greatest);
  }

  return { count, at, settings };
}
