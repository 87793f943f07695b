import { expect, test } from "vitest";
import { listOf } from "./pages.ts";
import type { Transport } from "./transport.ts";

/** Answers these pages, one a request. */
function transportOf(pages: readonly object[]): { transport: Transport; asked: unknown[] } {
  const asked: unknown[] = [];
  const request = async (_verb: string, _path: string, options: { readonly query?: { readonly cursor?: unknown } }) => {
    const page = pages[asked.length];
    if (page === undefined) throw new Error("asked on behind the end");
    asked.push(options.query?.cursor);
    return page;
  };
  return { transport: { request } as unknown as Transport, asked };
}

test.each([
  ["null", { next_cursor: null }],
  ["an empty text", { next_cursor: "" }],
  ["not there", {}],
  ["there, with nothing behind it", { next_cursor: "c2", has_more: false }],
])("a list ends where the cursor is %s", async (_, end) => {
  const { transport, asked } = transportOf([
    { things: [1, 2], next_cursor: "c1", has_more: true },
    { things: [3], ...end },
  ]);
  expect(await listOf<number>(transport, "/things", "things").toArray()).toEqual([1, 2, 3]);
  expect(asked).toEqual([undefined, "c1"]);
});
