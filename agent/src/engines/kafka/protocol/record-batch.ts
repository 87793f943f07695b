import { Writer } from "./codec.ts";

/** CRC-32C (Castagnoli), which Node's zlib lacks. */
const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = (value & 1) === 1 ? (value >>> 1) ^ 0x82f6_3b78 : value >>> 1;
  return value >>> 0;
});

export function crc32c(bytes: Buffer): number {
  let value = 0xffff_ffff;
  for (const byte of bytes) value = (table[(value ^ byte) & 0xff] ?? 0) ^ (value >>> 8);
  return (value ^ 0xffff_ffff) >>> 0;
}

/** A record batch (magic 2) with one uncompressed record without a key. */
export function singleRecord(value: Buffer, timeMs: number): Buffer {
  const record = new Writer();
  record.add(Buffer.from([0])); // attributes
  record.varint(0); // delta of the time
  record.varint(0); // delta of the offset
  record.varint(1); // length of the key: -1, zigzag
  record.varint(2 * value.length);
  record.add(value);
  record.varint(0); // headers
  const content = record.bytes();
  const length = new Writer();
  length.varint(2 * content.length);

  const checked = Buffer.alloc(40);
  checked.writeInt16BE(0, 0); // attributes
  checked.writeInt32BE(0, 2); // delta of the last offset
  checked.writeBigInt64BE(BigInt(timeMs), 6);
  checked.writeBigInt64BE(BigInt(timeMs), 14);
  checked.writeBigInt64BE(-1n, 22); // no producer
  checked.writeInt16BE(-1, 30);
  checked.writeInt32BE(-1, 32);
  checked.writeInt32BE(1, 36); // number of records
  const body = Buffer.concat([checked, length.bytes(), content]);

  const header = Buffer.alloc(21);
  header.writeBigInt64BE(0n, 0); // base offset
  header.writeInt32BE(body.length + 9, 8);
  header.writeInt32BE(-1, 12); // leader epoch
  header.writeInt8(2, 16);
  header.writeUInt32BE(crc32c(body), 17);
  return Buffer.concat([header, body]);
}
