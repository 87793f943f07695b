import { PassThrough, Readable, Writable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createByteSource } from "./byte-source.ts";

const signal = new AbortController().signal;

test("any sizes give the stream's bytes in order, however it is cut into chunks", async () => {
  const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 9 }), { maxLength: 20 });
  const requests = fc.array(fc.tuple(fc.boolean(), fc.nat(12)), { maxLength: 30 });
  await fc.assert(
    fc.asyncProperty(chunks, requests, async (parts, sizes) => {
      const all = Buffer.concat(parts);
      const source = createByteSource(Readable.from(parts.map((part) => Buffer.from(part))));
      let at = 0;
      for (const [passes, size] of sizes) {
        const expected = at + size <= all.length ? all.subarray(at, at + size) : undefined;
        if (passes) {
          const to = new PassThrough({ highWaterMark: 1 << 20 });
          expect(await source.pass(size, to, signal)).toBe(expected !== undefined);
          if (expected !== undefined && size > 0) expect(to.read()).toEqual(expected);
        } else expect(await source.take(size)).toEqual(expected);
        if (expected === undefined) return;
        at += size;
      }
    }),
  );
});

test("bytes wait for a slow receiver, and the wait ends with the signal", async () => {
  const source = createByteSource(Readable.from([Buffer.alloc(10), Buffer.alloc(10)]));
  const slow = new Writable({ highWaterMark: 1, write() {} });
  const abort = new AbortController();
  const passed = source.pass(20, slow, abort.signal);
  abort.abort();
  await expect(passed).rejects.toThrow(/abort/i);
});
