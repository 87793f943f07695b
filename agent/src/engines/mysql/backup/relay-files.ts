import { mkdir, open, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type ArchivedLogReader, type RecoveryTarget, TargetNotReached } from "../../backup-facet.ts";
import { binlogMagic, type BinlogTransaction, createBinlogScanner } from "./binlog-events.ts";
import { distance } from "./binlog-position.ts";
import type { DumpPosition } from "./dump-format.ts";

/** Files of the binary log as relay logs, which a server applies. */
export interface RelayFiles {
  /** Name of the first file. */
  readonly first: string;
  /** Transactions in the files, some of which the data may already have. */
  readonly gtids: string;
  /** Time of the newest transaction in milliseconds since 1970; undefined if there is none. */
  readonly reachedMs: number | undefined;
}

/** Size of the files from which on they are applied before more are written. */
const batchBytes = 256 << 20;

export const relayIndex = (directory: string): string => join(directory, "relay.index");

/**
 * Writes the archived log from a dump on to a directory, up to the last transaction that was committed at or before the
 * target. The files of one batch are removed before the next one is written. Throws TargetNotReached.
 */
export async function* relayFiles(
  directory: string,
  dump: Omit<DumpPosition, "gtids">,
  log: ArchivedLogReader,
  target: RecoveryTarget,
  signal: AbortSignal,
): AsyncGenerator<RelayFiles> {
  const targetUs = target.kind === "time" ? BigInt(target.time.getTime()) * 1_000n : undefined;
  /** Newest time of a commit that the objects record. */
  let newestMs = Number.NEGATIVE_INFINITY;
  let isStopped = false;
  let index = await firstObject(dump, log);
  const hasMore = () => index < log.count && !isStopped;
  while (hasMore()) {
    await rm(directory, { recursive: true, force: true });
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const gtids = createGtidSet();
    const names: string[] = [];
    let reachedUs: bigint | undefined;
    const isReplayed = ({ server, number, committedAtUs }: BinlogTransaction): boolean => {
      if (targetUs !== undefined && committedAtUs > targetUs) return false;
      gtids.add(server, number);
      reachedUs = committedAtUs;
      return true;
    };
    let bytes = 0;
    while (hasMore() && bytes < batchBytes) {
      const { branch } = (await log.at(index)).header;
      const name = join(directory, `relay.${String(names.length + 1).padStart(6, "0")}`);
      const scanner = createBinlogScanner();
      const file = await open(name, "wx", 0o640);
      try {
        while (hasMore()) {
          signal.throwIfAborted();
          const { header, log: piece } = await log.at(index);
          if (header.branch !== branch) break;
          if (header.time !== "") newestMs = Math.max(newestMs, Date.parse(header.time));
          await file.writeFile(piece);
          isStopped = !scanner.append(piece, isReplayed);
          index += 1;
        }
        // The last transaction of the log, or of a server that crashed, may be incomplete.
        await file.truncate(scanner.end);
      } finally {
        await file.close();
      }
      bytes += scanner.end;
      names.push(name);
    }
    const [first] = names;
    if (first === undefined) return;
    await writeFile(relayIndex(directory), names.map((name) => `${name}\n`).join(""), { mode: 0o640 });
    const reachedMs = reachedUs === undefined ? undefined : Number(reachedUs / 1_000n);
    yield { first, gtids: gtids.toString(), reachedMs };
  }
  if (target.kind === "time" && !isStopped && newestMs < target.time.getTime())
    throw new TargetNotReached("The log ends before the target.");
}

/** Index of the object with which the file of the dump's position begins. Throws TargetNotReached if it is missing. */
async function firstObject({ branch, position }: Omit<DumpPosition, "gtids">, log: ArchivedLogReader): Promise<number> {
  let [low, high] = [0, log.count - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const { header } = await log.at(middle);
    if (distance(header.from, position) >= 0) low = middle;
    else high = middle - 1;
  }
  for (let index = low; index >= 0; index -= 1) {
    const { header, log: bytes } = await log.at(index);
    if (header.branch === branch && bytes.subarray(0, binlogMagic.length).equals(binlogMagic)) return index;
    if (header.branch !== branch && index < low - 1) break;
  }
  throw new TargetNotReached("The archive does not have the log that follows the backup.");
}

/** A set of transactions that grows by one at a time, mostly in the order of their numbers. */
interface GtidSet {
  add(server: string, number: bigint): void;
  readonly isEmpty: boolean;
  /** In the engine's format, such as `3e11fa47-71ca-11e1-9e33-c80aa9429562:1-3:5`. */
  toString(): string;
}

export function createGtidSet(): GtidSet {
  const intervals = new Map<string, { readonly first: bigint; last: bigint }[]>();
  return {
    add(server, number) {
      const all = intervals.get(server) ?? [];
      intervals.set(server, all);
      const newest = all.at(-1);
      if (newest !== undefined && number === newest.last + 1n) newest.last = number;
      else if (newest === undefined || number < newest.first || number > newest.last)
        all.push({ first: number, last: number });
    },
    get isEmpty() {
      return intervals.size === 0;
    },
    toString: () =>
      [...intervals]
        .map(([server, all]) => [server, ...all.map(({ first, last }) => `${first}-${last}`)].join(":"))
        .join(","),
  };
}
