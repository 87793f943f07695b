import { expect, test } from "vitest";
import { array, int32, int64, nullableString, Reader, string, struct, uuid, Writer } from "./codec.ts";
import { crc32c, singleRecord } from "./record-batch.ts";

test.each([
  // RFC 3720, B.4.
  ["32 bytes of zeroes", Buffer.alloc(32), 0x8a91_36aa],
  ["32 bytes of ones", Buffer.alloc(32, 0xff), 0x62a8_ab43],
  ["increasing bytes", Buffer.from(Array.from({ length: 32 }, (_, at) => at)), 0x46dd_794e],
])("CRC-32C of %s is that of iSCSI", (_, bytes, expected) => {
  expect(crc32c(bytes)).toBe(expected);
});

test("a batch has the length and the checksum of what follows", () => {
  const batch = singleRecord(Buffer.from("value"), 1_700_000_000_000);
  expect(batch.readInt32BE(8)).toBe(batch.length - 12);
  expect(batch.readUInt32BE(17)).toBe(crc32c(batch.subarray(21)));
  expect(batch.includes("value")).toBe(true);
});

const sample = struct({
  name: string,
  note: nullableString,
  id: uuid,
  offsets: array(struct({ index: int32, offset: int64 })),
});

test("a structure is read as it was written, and unknown tagged fields are skipped", () => {
  const value = {
    name: "x".repeat(300),
    note: null,
    id: "aGVsbG8taGVsbG8taGVsbA",
    offsets: [{ index: -1, offset: 2 ** 52 }],
  };
  const writer = new Writer();
  sample.write(writer, value);
  expect(sample.read(new Reader(writer.bytes()))).toEqual(value);
  const tagged = Buffer.concat([writer.bytes().subarray(0, -1), Buffer.from([1, 7, 2, 0xca, 0xfe])]);
  const reader = new Reader(tagged);
  expect(sample.read(reader)).toEqual(value);
  expect(() => reader.take(1)).toThrow("incomplete");
});

test("a response that ends early is an error", () => {
  expect(() => sample.read(new Reader(Buffer.from([5, 0x61])))).toThrow("incomplete");
});
