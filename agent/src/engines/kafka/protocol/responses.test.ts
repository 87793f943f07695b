import { expect, test } from "vitest";
import { createResponses } from "./responses.ts";

function encoded(texts: readonly string[]): Buffer {
  const all = texts.map((text) => {
    const length = Buffer.alloc(4);
    length.writeInt32BE(text.length);
    return Buffer.concat([length, Buffer.from(text)]);
  });
  return Buffer.concat(all);
}

function read(parts: readonly Buffer[], maxBytes = 100): string[] {
  const found: string[] = [];
  const add = createResponses(maxBytes, (response) => found.push(response.toString()));
  for (const part of parts) add(part);
  return found;
}

const texts = ["1234", "123456789", "12345", "a response at the limit".padEnd(100, ".")];
const bytes = encoded(texts);

test.each([1, 2, 3, 5, 7, 64, bytes.length])("responses in parts of %i bytes are complete", (size) => {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size));
  expect(read(parts)).toEqual(texts);
});

test("a response is passed on only with its last byte", () => {
  expect(read([bytes.subarray(0, 7)])).toEqual([]);
  expect(read([bytes.subarray(0, 7), bytes.subarray(7, 8)])).toEqual(["1234"]);
});

test.each([
  [-1, "too short"],
  [3, "too short"],
  [101, "too large"],
])("a length of %i is refused before its bytes", (length, reason) => {
  const head = Buffer.alloc(4);
  head.writeInt32BE(length);
  expect(() => read([head])).toThrow(`the broker's response is ${reason}`);
});

test("a large response is not copied with each of its parts", () => {
  const part = Buffer.alloc(16 << 10, "x");
  const count = 2_000;
  const head = Buffer.alloc(4);
  head.writeInt32BE(part.length * count);
  let copied = 0;
  const concat = Buffer.concat;
  const add = createResponses(part.length * count, () => undefined);
  Buffer.concat = (list, length) => {
    const all = concat(list, length);
    copied += all.length;
    return all;
  };
  try {
    add(head);
    for (let index = 0; index < count; index += 1) add(part);
  } finally {
    Buffer.concat = concat;
  }
  expect(copied).toBeLessThan(part.length * count + 100);
});
