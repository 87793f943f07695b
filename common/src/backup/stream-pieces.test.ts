import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { piecesOf } from "./stream-pieces.ts";

const pieceBytes = 8_192;

/** A tar entry as pg_basebackup writes it: a header block, the content, and padding to a full block. */
function tarOf(files: readonly (readonly [name: string, bytes: Buffer])[]): Buffer {
  const blocks = files.flatMap(([name, bytes]) => {
    const header = Buffer.alloc(512);
    header.write(name);
    header.write(`${bytes.length.toString(8).padStart(11, "0")}\0`, 124);
    return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1_024)]);
}

async function* inChunks(bytes: Buffer, chunkBytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
}

async function cut(name: string, bytes: Buffer, chunkBytes = 1_000): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  const room = async () => Buffer.alloc(pieceBytes);
  for await (const piece of piecesOf(name, inChunks(bytes, chunkBytes), room)) pieces.push(piece);
  return pieces;
}

const small = (seed: number) => Buffer.alloc(700, seed);
const large = randomBytes(40_000);
const files: [string, Buffer][] = [
  ["label", small(1)],
  ["a", small(2)],
  ["large", large],
  ["b", small(3)],
  ["c", small(4)],
];

test.each([
  ["a tar", "base.tar", tarOf(files)],
  ["a tar that is cut off", "base.tar", tarOf(files).subarray(0, 30_001)],
  ["a tar by its name alone", "base.tar", randomBytes(50_000)],
  ["an empty tar", "base.tar", Buffer.alloc(0)],
  ["anything else", "dump.rdb", randomBytes(50_000)],
])("pieces of %s are its bytes, none is larger than asked for, and chunks do not matter", async (_, name, bytes) => {
  const pieces = await cut(name, bytes);
  expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
  const least = bytes.length === 0 ? 0 : 1;
  expect(pieces.every(({ length }) => length >= least && length <= pieceBytes)).toBe(true);
  expect(pieces.length).toBeGreaterThan(0);
  expect((await cut(name, bytes, 333)).map(({ length }) => length)).toEqual(pieces.map(({ length }) => length));
});

test("a file that grew does not change the pieces of other files", async () => {
  const before = await cut("base.tar", tarOf(files));
  const grown = files.map(([name, bytes]): [string, Buffer] => [name, name === "a" ? Buffer.alloc(2_900, 9) : bytes]);
  const after = new Set((await cut("base.tar", tarOf(grown))).map((piece) => piece.toString("latin1")));
  const same = before.filter((piece) => after.has(piece.toString("latin1")));
  expect(same.length).toBe(before.length - 1);
});
