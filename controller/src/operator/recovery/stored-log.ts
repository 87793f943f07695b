import { buffer } from "node:stream/consumers";
import { logHeadBytes, type LogHeader, peekLog } from "@holdfast/common/backup/log-object.ts";
import { logObject, logPrefix, logsPrefix } from "@holdfast/common/backup/object-names.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { LogKey, LogRange } from "#services/backup/archive/archive.ts";
import { tailAfter } from "#services/backup/log/log-archive.ts";
import { objectsBelow } from "#services/backup/objects/stored-prefix.ts";

type Reads = Pick<ObjectStore, "get" | "list">;

/** Maximum number of objects to read backwards: a replaced primary may have stored the newest ones. */
const checksMax = 1_000;

/** The archive of a service, according to the object store. */
export interface StoredLog {
  readonly ranges: readonly LogRange[];
  /** Highest term of a stored object; 0 if there is none. */
  readonly term: number;
}

/**
 * The recorded ranges of the archive, extended by stored objects: every object that continues the newest range belongs
 * to it, also in a later term. Only headers of objects are read here; a restore verifies each object.
 */
export async function readStoredLog(
  objects: Reads,
  service: string,
  recorded: readonly LogRange[],
  keys: readonly LogKey[],
): Promise<StoredLog> {
  const terms = await termsOf(objects, service);
  const term = terms.at(-1) ?? 0;
  // The record may have a range without objects.
  const stored = recorded.filter(({ firstSequence, lastSequence }) => lastSequence >= firstSequence);
  const newest = stored.at(-1);
  if (newest === undefined) return { ranges: [], term };
  let ranges = stored.slice(0, -1);
  const location = { service, term: newest.term };
  const end = await peek(objects, logObject(location, newest.lastSequence));
  if (end === undefined) return { ranges: stored, term };
  let position = end.to;
  for (const each of terms.filter((candidate) => candidate >= newest.term)) {
    const isNewest = each === newest.term;
    let range: LogRange | undefined = isNewest ? newest : undefined;
    const after = logObject({ service, term: each }, isNewest ? newest.lastSequence : 0);
    for await (const { key } of objectsBelow(objects, logPrefix({ service, term: each }), { after })) {
      const header = await peek(objects, key);
      if (header !== undefined && header.from !== position && range === undefined) {
        const sealed = await rangesUpTo(objects, service, ranges, header.from);
        if (sealed !== undefined) [ranges, position] = [sealed, header.from];
      }
      if (header?.from !== position) break;
      position = header.to;
      range = extendRange(range ?? nextRange(newest, header), header, keys);
    }
    if (range !== undefined) ranges.push(range);
  }
  return { ranges, term };
}

/**
 * The ranges up to the object that ends at a position; later objects, which a replaced primary stored, are discarded.
 * Undefined if none of the newest objects ends at the position.
 */
async function rangesUpTo(
  objects: Reads,
  service: string,
  ranges: readonly LogRange[],
  position: string,
): Promise<LogRange[] | undefined> {
  let checked = 0;
  for (let index = ranges.length - 1; index >= 0; index -= 1) {
    const range = ranges[index] as LogRange;
    if (range.archiveId !== ranges.at(-1)?.archiveId) return undefined;
    for (let sequence = range.lastSequence; sequence >= range.firstSequence; sequence -= 1) {
      checked += 1;
      if (checked > checksMax) return undefined;
      const header = await peek(objects, logObject({ service, term: range.term }, sequence));
      if (header?.to === position) {
        const tail = tailAfter(range, sequence, Date.parse(header.time));
        return [...ranges.slice(0, index), { ...range, lastSequence: sequence, ...tail }];
      }
    }
  }
  return undefined;
}

/** An empty range that continues the previous one in a new term. */
function nextRange({ archiveId, toTime }: LogRange, { term, sequence }: LogHeader): LogRange {
  const of = { archiveId, term, firstSequence: sequence, lastSequence: sequence - 1, keys: [], checkpoints: [] };
  return { ...of, fromTime: toTime, toTime, continues: true };
}

function extendRange(range: LogRange, header: LogHeader & { keyId: string }, keys: readonly LogKey[]): LogRange {
  const key = keys.find(({ keyId }) => keyId === header.keyId);
  const hasKey = key === undefined || range.keys.some(({ keyId }) => keyId === header.keyId);
  const time = header.time === "" ? 0 : Date.parse(header.time);
  return {
    ...range,
    lastSequence: header.sequence,
    toTime: Math.max(range.toTime, time),
    keys: hasKey ? range.keys : [...range.keys, key],
  };
}

async function peek(objects: Reads, key: string): Promise<(LogHeader & { keyId: string }) | undefined> {
  const found = await objects.get(key, { start: 0, end: logHeadBytes });
  return found && peekLog(await buffer(found));
}

/** All terms of stored objects, in ascending order. */
async function termsOf(objects: Reads, service: string): Promise<number[]> {
  const prefix = logsPrefix(service);
  const terms: number[] = [];
  for (let after = prefix; ; ) {
    const { objects: found } = await objects.list(prefix, { after, limit: 1 });
    const [text = ""] = found[0]?.key.slice(prefix.length).split("/") ?? [];
    if (text === "") return terms;
    terms.push(Number(text));
    // The next page begins after all objects of the term: `~` sorts after all digits.
    after = `${prefix}${text}/~`;
  }
}
