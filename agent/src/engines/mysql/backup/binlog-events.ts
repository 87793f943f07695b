/*
 * Framing of the events of a binary log (MySQL internals, "Binary Log Event"). A file begins with a magic number. Each
 * transaction begins with a GTID event that has the transaction's length, so its other events need not be parsed.
 */

export const binlogMagic = Buffer.from([0xfe, 0x62, 0x69, 0x6e]);

const headerBytes = 19;
/** Bytes of a GTID event that are parsed at most: the header, and the fields up to the transaction's length. */
const gtidBytes = headerBytes + 65;
const gtidEvent = 33;
const taggedGtidEvent = 42;
const anonymousGtidEvent = 34;
/** Bit of the first commit time: the original commit time follows. */
const hasOriginalTime = 1n << 55n;

/** A transaction, or an event outside of transactions. */
interface BinlogUnit {
  readonly bytes: number;
  readonly transaction: BinlogTransaction | undefined;
}

export interface BinlogTransaction {
  readonly server: string;
  readonly number: bigint;
  /** Time of the commit on the server that executed it first, in microseconds since 1970. */
  readonly committedAtUs: bigint;
}

/** Finds the ends of transactions in the bytes of one file, which are appended in order. */
export interface BinlogScanner {
  /** Offset of the end of the last complete transaction or event. */
  readonly end: number;
  /**
   * Appends bytes. Calls `onTransaction` at the beginning of each transaction; `false` stops the scan there. Returns
   * false once it stopped.
   */
  append(bytes: Buffer, onTransaction: (transaction: BinlogTransaction) => boolean): boolean;
}

export function createBinlogScanner(): BinlogScanner {
  let size = 0;
  let end = binlogMagic.length;
  /** End of the transaction or event that began last. */
  let next = binlogMagic.length;
  let isStopped = false;
  /** Bytes from `next` on. */
  let rest: Buffer = Buffer.alloc(0);

  function unitAt(): BinlogUnit | undefined {
    if (rest.length < headerBytes) return undefined;
    const eventBytes = rest.readUInt32LE(9);
    if (eventBytes < headerBytes) throw new Error(`the binary log has a damaged event at ${next}`);
    const isParsed = rest.length >= Math.min(eventBytes, gtidBytes);
    return isParsed ? parseUnit(rest, eventBytes) : undefined;
  }

  return {
    get end() {
      return end;
    },
    append(bytes, onTransaction) {
      if (isStopped) return false;
      const from = Math.max(0, next - size);
      size += bytes.length;
      if (from < bytes.length) rest = rest.length === 0 ? bytes.subarray(from) : Buffer.concat([rest, bytes]);
      for (;;) {
        if (next > size) return true;
        end = next;
        const unit = unitAt();
        if (unit === undefined) return true;
        if (unit.transaction !== undefined && !onTransaction(unit.transaction)) {
          isStopped = true;
          return false;
        }
        next += unit.bytes;
        rest = rest.subarray(Math.min(unit.bytes, rest.length));
      }
    },
  };
}

function parseUnit(bytes: Buffer, eventBytes: number): BinlogUnit {
  const type = bytes[4];
  if (type === taggedGtidEvent || type === anonymousGtidEvent)
    throw new Error("the binary log has a transaction without a plain identifier");
  if (type !== gtidEvent) return { bytes: eventBytes, transaction: undefined };
  const body = bytes.subarray(headerBytes);
  const id = body.subarray(1, 17).toString("hex");
  const server = [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)].join("-");
  const number = body.readBigInt64LE(17);
  let at = 42;
  const time = () => {
    const value = BigInt(body.readUIntLE(at, 6)) | (BigInt(body[at + 6] ?? 0) << 48n);
    at += 7;
    return value;
  };
  const committed = time();
  const committedAtUs = (committed & hasOriginalTime) === 0n ? committed : time();
  return { bytes: packedLength(body, at), transaction: { server, number, committedAtUs } };
}

/** A number of MySQL's protocol: one byte, or a byte that determines the size of the number. */
function packedLength(body: Buffer, at: number): number {
  const first = body[at] ?? 0;
  if (first < 251) return first;
  if (first === 252) return body.readUInt16LE(at + 1);
  if (first === 253) return body.readUIntLE(at + 1, 3);
  return Number(body.readBigUInt64LE(at + 1));
}
