/**
 * A WAL record that recovery can stop at. The layout of pages and records is defined in PostgreSQL's
 * access/xlog_internal.h and access/xlogrecord.h, on a little-endian machine. Only the beginning of a record is parsed.
 */
export type LogRecord =
  /** Commit, abort or prepare of a transaction. `timeUs`: microseconds since 2000-01-01 by the engine's clock. */
  | { readonly kind: "transaction"; readonly position: bigint; readonly timeUs: bigint }
  /** The base backup that started at `start` is consistent from here on. */
  | { readonly kind: "backup_end"; readonly position: bigint; readonly start: bigint };

/** Contiguous log from a position on. */
export interface LogBytes {
  readonly from: bigint;
  readonly bytes: Buffer;
}

const pageBytes = 8_192n;
const shortHeader = 24;
const longHeader = 40;
const recordHeader = 24;
/** Flags of a page header: the page begins with the rest of a record (XLP_FIRST_IS_CONTRECORD); the header is long. */
const continuesRecord = 1;
const hasLongHeader = 2;
/** Bytes at the beginning of a record that contain all parsed fields. */
const headBytes = 128;

const xlogManager = 0;
const transactionManager = 1;
const backupEnd = 0x50;
const prepare = 0x10;
/** Commit, abort, commit prepared and abort prepared. */
const endOperations: readonly number[] = [0x00, 0x20, 0x30, 0x40];

/** A record that ends on a later page. */
interface OpenRecord {
  readonly position: bigint;
  readonly total: number;
  seen: number;
  head: Buffer;
}

/** Records of contiguous pieces, in order, from the first page boundary on. */
export async function* readLogRecords(pieces: AsyncIterable<LogBytes>): AsyncGenerator<LogRecord> {
  let open: OpenRecord | undefined;
  let remainder: LogBytes | undefined;

  function* readPage(from: bigint, page: Buffer): Generator<LogRecord> {
    let at = page.length >= shortHeader && page.readBigUInt64LE(8) === from ? headerOf(page) : page.length;
    const continues = at < page.length && (page.readUInt16LE(2) & continuesRecord) !== 0;
    if (continues) {
      const remaining = page.readUInt32LE(16);
      if (open !== undefined) {
        append(open, page.subarray(at, at + remaining));
        const record = open.seen < open.total ? undefined : recordOf(open);
        if (open.seen >= open.total) open = undefined;
        if (record !== undefined) yield record;
      }
      at += aligned(remaining);
    } else open = undefined;
    while (at + 4 <= page.length) {
      const total = page.readUInt32LE(at);
      // The remainder of the page, and of the segment, is empty.
      if (total < recordHeader) return;
      const record: OpenRecord = { position: from + BigInt(at), total, seen: 0, head: Buffer.alloc(0) };
      append(record, page.subarray(at, at + total));
      at += aligned(total);
      if (record.seen < total) {
        open = record;
        return;
      }
      const found = recordOf(record);
      if (found !== undefined) yield found;
    }
  }

  for await (const piece of pieces) {
    const from = remainder?.from ?? piece.from;
    const bytes = remainder === undefined ? piece.bytes : Buffer.concat([remainder.bytes, piece.bytes]);
    let at = Number((pageBytes - (from % pageBytes)) % pageBytes);
    for (; at + Number(pageBytes) <= bytes.length; at += Number(pageBytes))
      yield* readPage(from + BigInt(at), bytes.subarray(at, at + Number(pageBytes)));
    remainder = at < bytes.length ? { from: from + BigInt(at), bytes: bytes.subarray(at) } : undefined;
    // The piece ends before its first page boundary.
    if (remainder === undefined && at > bytes.length) remainder = { from, bytes };
  }
  if (remainder !== undefined && remainder.from % pageBytes === 0n) yield* readPage(remainder.from, remainder.bytes);
}

function headerOf(page: Buffer): number {
  return (page.readUInt16LE(2) & hasLongHeader) === 0 ? shortHeader : longHeader;
}

function aligned(bytes: number): number {
  return Math.ceil(bytes / 8) * 8;
}

function append(record: OpenRecord, bytes: Buffer): void {
  record.seen += bytes.length;
  if (record.head.length < headBytes)
    record.head = Buffer.concat([record.head, bytes.subarray(0, headBytes - record.head.length)]);
}

/** Undefined for a record that recovery cannot stop at. */
function recordOf({ head, position }: OpenRecord): LogRecord | undefined {
  const info = head.readUInt8(16);
  const manager = head.readUInt8(17);
  if (manager === xlogManager && (info & 0xf0) === backupEnd) {
    const start = dataOf(head);
    return start && { kind: "backup_end", position, start: start.readBigUInt64LE(0) };
  }
  if (manager !== transactionManager) return undefined;
  const operation = info & 0x70;
  if (operation !== prepare && !endOperations.includes(operation)) return undefined;
  const data = dataOf(head);
  return data && { kind: "transaction", position, timeUs: data.readBigInt64LE(operation === prepare ? 16 : 0) };
}

/** Main data of a record, after the ids of its origin and top-level transaction; undefined for a record with blocks. */
function dataOf(head: Buffer): Buffer | undefined {
  for (let at = recordHeader; at < head.length; ) {
    const id = head.readUInt8(at);
    if (id === 255) return head.subarray(at + 2);
    if (id === 254) return head.subarray(at + 5);
    if (id === 253) at += 3;
    else if (id === 252) at += 5;
    else return undefined;
  }
  return undefined;
}
