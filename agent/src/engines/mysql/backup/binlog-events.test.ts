import { expect, test } from "vitest";
import { binlogMagic, type BinlogTransaction, createBinlogScanner } from "./binlog-events.ts";
import { createGtidSet } from "./relay-files.ts";

const server = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

function event(type: number, body: Buffer): Buffer {
  const header = Buffer.alloc(19);
  header[4] = type;
  header.writeUInt32LE(19 + body.length, 9);
  return Buffer.concat([header, body]);
}

/** A GTID event and one more, as the engine writes them; with `original` as a replica does. */
function transaction(number: bigint, committedAtUs: bigint, bodyBytes: number, original?: bigint): Buffer {
  const time = (us: bigint) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(us);
    return bytes.subarray(0, 7);
  };
  const ids = Buffer.alloc(42);
  Buffer.from(server.replaceAll("-", ""), "hex").copy(ids, 1);
  ids.writeBigInt64LE(number, 17);
  const times = original === undefined ? [time(committedAtUs)] : [time(committedAtUs | (1n << 55n)), time(original)];
  const lengthBytes = Buffer.alloc(9);
  lengthBytes[0] = 254;
  const versions = Buffer.alloc(8);
  const rest = event(30, Buffer.alloc(bodyBytes));
  const begin = event(33, Buffer.concat([ids, ...times, lengthBytes, versions]));
  const total = BigInt(begin.length + rest.length);
  begin.writeBigUInt64LE(total, begin.length - versions.length - 8);
  return Buffer.concat([begin, rest]);
}

const file = Buffer.concat([
  binlogMagic,
  event(15, Buffer.alloc(100)),
  event(35, Buffer.alloc(8)),
  transaction(1n, 1_000n, 10),
  transaction(2n, 5_000n, 300, 2_000n),
  transaction(4n, 3_000n, 70_000),
]);
const last = file.length - transaction(4n, 3_000n, 70_000).length;

function scan(bytes: Buffer, pieceBytes: number, untilUs = 1_000_000n) {
  const scanner = createBinlogScanner();
  const found: BinlogTransaction[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    const continues = scanner.append(bytes.subarray(at, at + pieceBytes), (each) => {
      if (each.committedAtUs > untilUs) return false;
      found.push(each);
      return true;
    });
    if (!continues) break;
  }
  return { found: found.map(({ number, committedAtUs }) => [number, committedAtUs]), end: scanner.end };
}

const all = [
  [1n, 1_000n],
  [2n, 2_000n],
  [4n, 3_000n],
];

test.each([1, 7, 100, 1_000, 1_000_000])("a scan in pieces of %d bytes finds all transactions", (pieceBytes) => {
  expect(scan(file, pieceBytes)).toEqual({ found: all, end: file.length });
  expect(scan(file, 1_000_000).found.length).toBe(3);
});

test.each([1, 1_000_000])("an incomplete transaction ends the file before it, in pieces of %d bytes", (pieceBytes) => {
  for (const cut of [1, 60_000, 70_050]) expect(scan(file.subarray(0, -cut), pieceBytes).end).toBe(last);
});

test.each([1, 1_000_000])("a scan stops before the first later transaction, in pieces of %d bytes", (pieceBytes) => {
  expect(scan(file, pieceBytes, 2_999n)).toEqual({ found: all.slice(0, 2), end: last });
});

test("a damaged length is refused", () => {
  const damaged = Buffer.from(file);
  damaged.writeUInt32LE(3, binlogMagic.length + 9);
  expect(() => scan(damaged, 1_000)).toThrow("damaged");
});

test("a set of transactions has intervals by server", () => {
  const set = createGtidSet();
  expect(set.toString()).toBe("");
  for (const number of [1n, 2n, 3n, 7n, 8n, 2n]) set.add(server, number);
  set.add("other", 5n);
  expect(set.toString()).toBe(`${server}:1-3:7-8:2-2,other:5-5`);
});
