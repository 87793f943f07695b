import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { expect, test } from "vitest";
import { openStream, sealStream } from "./sealed-stream.ts";

const key = randomBytes(32);
const keyOf = () => key;
const header = { format: "test 1", keyVersion: "v1" };
const frame = 64 * 1024;

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const seal = (plain: Buffer) => buffer(sealStream(inChunks(plain, 10_000), header, keyOf));
const open = (sealed: Buffer, format = "test 1") => buffer(openStream(inChunks(sealed, 7_777), { format }, keyOf));

test.each([0, 1, frame - 1, frame, frame + 1, 3 * frame + 17])("%d bytes round-trip", async (size) => {
  const plain = randomBytes(size);
  const sealed = await seal(plain);
  expect((await open(sealed)).equals(plain)).toBe(true);
  expect((await seal(plain)).equals(sealed)).toBe(false);
});

test("a changed, truncated, reordered, extended or renamed stream is rejected", async () => {
  const sealed = await seal(randomBytes(3 * frame));
  const start = 5 + 4 + sealed.readUInt32BE(5);
  const size = 4 + frame + 16;
  const part = (from: number, to?: number) => sealed.subarray(start + from * size, to && start + to * size);
  const head = sealed.subarray(0, start);
  const changed = Buffer.from(sealed);
  changed.writeUInt8(changed.readUInt8(start + 100) ^ 1, start + 100);
  const cases: [Buffer, string][] = [
    [changed, "unable to authenticate"],
    [sealed.subarray(0, -1), "ends too early"],
    [Buffer.concat([head, part(0, 2)]), "ends too early"],
    [Buffer.concat([head, part(1, 2), part(0, 1), part(2)]), "unable to authenticate"],
    [Buffer.concat([head, part(1)]), "unable to authenticate"],
    [Buffer.concat([sealed, Buffer.of(0)]), "bytes follow the last frame"],
    [Buffer.concat([head, part(0, 1), part(2)]), "unable to authenticate"],
    [Buffer.from("something else entirely"), "not a sealed stream"],
  ];
  for (const [broken, why] of cases) await expect(open(broken)).rejects.toThrow(why);
  await expect(open(sealed, "test 2")).rejects.toThrow("test 1");
});
