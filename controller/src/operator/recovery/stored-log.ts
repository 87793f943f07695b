import { buffer } from "node:stream/consumers";
import { logHeadBytes, type LogHeader, peekLog } from "@holdfast/common/backup/log-object.ts";
import { logObject, logPrefix, logsPrefix } from "@holdfast/common/backup/object-names.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { LogKey, LogRange } from "#services/backup/archive.ts";
import { objectsBelow } from "#services/backup/stored-prefix.ts";

type Reads = Pick<ObjectStore, "get" | "list">;

/** So many of the newest objects may be of a primary that was replaced. */
const mostLooks = 1_000;

/** How far the log of a service reaches, by what is in the store. */
export interface StoredLog {
  readonly ranges: readonly LogRange[];
  /** Highest one that anything was stored under; 0 when nothing was. */
  readonly term: number;
}

/**
 * The ranges that were noted last, as long as the store has them: whatever goes on from the newest one belongs to it, also in a
 * later term. Objects are looked at by what they say of themselves; a restore opens each of them and refuses one that lied.
 */
export async function readStoredLog(
  objects: Reads,
  service: string,
  noted: readonly LogRange[],
  keys: readonly LogKey[],
): Promise<StoredLog> {
  const terms = await termsOf(objects, service);
  const term = terms.at(-1) ?? 0;
  // A term of which nothing is stored is noted, too.
  const stored = noted.filter(({ firstSequence, lastSequence }) => lastSequence >= firstSequence);
  const newest = stored.at(-1);
  if (newest === undefined) return { ranges: [], term };
  let ranges = stored.slice(0, -1);
  const place = { service, term: newest.term };
  const end = await peek(objects, logObject(place, newest.lastSequence));
  if (end === undefined) return { ranges: stored, term };
  let position = end.to;
  for (const each of terms.filter((one) => one >= newest.term)) {
    const isNewest = each === newest.term;
    let range: LogRange | undefined = isNewest ? newest : undefined;
    const after = logObject({ service, term: each }, isNewest ? newest.lastSequence : 0);
    for await (const { key } of objectsBelow(objects, logPrefix({ service, term: each }), { after })) {
      const header = await peek(objects, key);
      if (header !== undefined && header.from !== position && range === undefined) {
        const sealed = await sealedAt(objects, service, ranges, header.from);
        if (sealed !== undefined) [ranges, position] = [sealed, header.from];
      }
      if (header?.from !== position) break;
      position = header.to;
      range = extended(range ?? begun(newest, header), header, keys);
    }
    if (range !== undefined) ranges.push(range);
  }
  return { ranges, term };
}

/**
 * The ranges up to the object that ends at a position: a primary that was replaced may have stored more, which is nobody's. Undefined
 * where none of the newest objects ends there.
 */
async function sealedAt(
  objects: Reads,
  service: string,
  ranges: readonly LogRange[],
  position: string,
): Promise<LogRange[] | undefined> {
  let looks = 0;
  for (let index = ranges.length - 1; index >= 0; index -= 1) {
    const range = ranges[index] as LogRange;
    if (range.archiveId !== ranges.at(-1)?.archiveId) return undefined;
    for (let sequence = range.lastSequence; sequence >= range.firstSequence; sequence -= 1) {
      looks += 1;
      if (looks > mostLooks) return undefined;
      const header = await peek(objects, logObject({ service, term: range.term }, sequence));
      if (header?.to === position) return [...ranges.slice(0, index), { ...range, lastSequence: sequence }];
    }
  }
  return undefined;
}

/** Its log goes on from that of the range before. */
function begun({ archiveId, toTime }: LogRange, { term, sequence }: LogHeader): LogRange {
  const of = { archiveId, term, firstSequence: sequence, lastSequence: sequence - 1, keys: [], checkpoints: [] };
  return { ...of, fromTime: toTime, toTime, continues: true };
}

function extended(range: LogRange, header: LogHeader & { keyId: string }, keys: readonly LogKey[]): LogRange {
  const key = keys.find(({ keyId }) => keyId === header.keyId);
  const isKnown = key === undefined || range.keys.some(({ keyId }) => keyId === header.keyId);
  const time = header.time === "" ? 0 : Date.parse(header.time);
  return {
    ...range,
    lastSequence: header.sequence,
    toTime: Math.max(range.toTime, time),
    keys: isKnown ? range.keys : [...range.keys, key],
  };
}

async function peek(objects: Reads, key: string): Promise<(LogHeader & { keyId: string }) | undefined> {
  const found = await objects.get(key, { start: 0, end: logHeadBytes });
  return found && peekLog(await buffer(found));
}

/** Ascending. */
async function termsOf(objects: Reads, service: string): Promise<number[]> {
  const prefix = logsPrefix(service);
  const terms: number[] = [];
  for (let after = prefix; ; ) {
    const { objects: found } = await objects.list(prefix, { after, limit: 1 });
    const [text = ""] = found[0]?.key.slice(prefix.length).split("/") ?? [];
    if (text === "") return terms;
    terms.push(Number(text));
    // Behind all of the term: no sequence is so high.
    after = `${prefix}${text}/~`;
  }
}
