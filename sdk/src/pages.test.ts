import { expect, test } from "vitest";
import { listOf } from "./pages.ts";
import type { RequestOptions, Transport } from "./transport.ts";
import { partial } from "@holdfast/testing/partial.ts";

/** A transport that responds with these pages in order. */
function transportOf(pages: readonly object[]): { transport: Transport; requests: unknown[] } {
  const requests: unknown[] = [];
  const request = async (_verb: string, _path: string, options?: RequestOptions) => {
    const page = pages[requests.length];
    if (page === undefined) throw new Error("requested a page after the last");
    requests.push(options?.query?.["cursor"]);
    return page;
  };
  return { transport: partial<Transport>({ request }), requests };
}

test.each([
  ["null", { next_cursor: null }],
  ["an empty text", { next_cursor: "" }],
  ["not there", {}],
  ["there, with nothing behind it", { next_cursor: "c2", has_more: false }],
])("a list ends where the cursor is %s", async (_, end) => {
  const { transport, requests } = transportOf([
    { things: [1, 2], next_cursor: "c1", has_more: true },
    { things: [3], ...end },
  ]);
  expect(await listOf<number>(transport, "/things", "things").toArray()).toEqual([1, 2, 3]);
  expect(requests).toEqual([undefined, "c1"]);
});
