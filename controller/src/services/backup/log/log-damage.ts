import { buffer } from "node:stream/consumers";
import { BackupDamaged } from "@holdfast/common/backup/backup-reader.ts";
import { logHeadBytes, type LogHeader, openLog, peekLog } from "@holdfast/common/backup/log-object.ts";
import { logObject } from "@holdfast/common/backup/object-names.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { LogHole, LogRange } from "../archive/archive.ts";
import { type BackupKeyObject, openDataKey } from "../backup-key.ts";
import { lastStored } from "./log-holes.ts";

export interface LogDamageDeps {
  readonly objects: Pick<ObjectStore, "get" | "head">;
  readonly sealer: Sealer;
}

/** Maximum number of adjacent absent objects, in each direction; the next reader finds further ones. */
const neighborsMax = 1_000;
/** Maximum number of objects whose headers are read to find the times around a hole. */
const headersMax = 100;
/** Tolerance between the primary's clock (times in headers) and the controller's clock (times of backups). */
const clockToleranceMs = 10_000;

/**
 * The hole around a log object that a machine reported as damaged, with the adjacent absent objects. The object is
 * read, because a report alone proves nothing: undefined if it can be decrypted and continues the object before it.
 * Throws the store's error.
 */
export async function holeAt(
  service: string,
  range: LogRange,
  sequence: number,
  key: BackupKeyObject,
  now: number,
  { objects, sealer }: LogDamageDeps,
): Promise<LogHole | undefined> {
  const location = { service, term: range.term };
  const isInRange = (at: number) => at >= range.firstSequence && at <= lastStored(range);

  async function open(at: number): Promise<LogHeader | undefined> {
    const stored = await objects.get(logObject(location, at));
    if (stored === undefined) return undefined;
    const secretOf = (id: string) => {
      const found = range.keys.find(({ keyId }) => keyId === id);
      return found && openDataKey(key, { id, ...found }, sealer);
    };
    try {
      return openLog(await buffer(stored), { ...location, sequence: at }, secretOf).header;
    } catch (error) {
      if (error instanceof BackupDamaged) return undefined;
      throw error;
    }
  }

  async function peek(at: number): Promise<LogHeader | undefined> {
    const stored = await objects.get(logObject(location, at), { start: 0, end: logHeadBytes });
    return stored && peekLog(await buffer(stored));
  }

  const timeOf = (header: LogHeader | undefined) => Date.parse(header?.time ?? "");

  /** The first time in a header that `accepts` admits, from the sequence number `first` in the direction `step`. */
  async function timeFrom(first: number, step: 1 | -1, accepts: (time: number) => boolean) {
    for (let at = first, read = 0; isInRange(at) && read < headersMax; at += step, read += 1) {
      const time = timeOf(await peek(at));
      if (!Number.isNaN(time) && accepts(time)) return time;
    }
    return undefined;
  }

  async function lastAbsent(from: number, step: 1 | -1): Promise<number> {
    for (let at = from + step; Math.abs(at - from) <= neighborsMax; at += step)
      if (!isInRange(at) || (await objects.head(logObject(location, at))) !== undefined) return at - step;
    return from + step * neighborsMax;
  }

  const header = await open(sequence);
  if (header !== undefined) {
    const before = isInRange(sequence - 1) ? await open(sequence - 1) : undefined;
    if (before === undefined || before.to === header.from) return undefined;
  }
  const [firstSequence, lastSequence] = [await lastAbsent(sequence, -1), await lastAbsent(sequence, 1)];
  const from = (await timeFrom(firstSequence - 1, -1, () => true)) ?? range.fromTime;
  // The commit in the next header may be in the hole; a later commit is not.
  const next = await timeFrom(lastSequence + 1, 1, () => true);
  const later = next === undefined ? undefined : await timeFrom(lastSequence + 2, 1, (time) => time > next);
  const to = Math.min(now, (later ?? now) + clockToleranceMs);
  return { firstSequence, lastSequence, from: Math.min(from, to), to };
}
