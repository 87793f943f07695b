import { describe, expect, test } from "vitest";
import { ConnectionFailed } from "./errors.ts";
import { readServerEvents, type ServerEvent } from "./follow.ts";

const text = `: following\n\ndata: {"a":"ü€"}\n\nid: c1\ndata: 2\n\nevent: error\ndata: 3\ndata: 4\n\ndata:5\n\n`;
const events = [
  { id: undefined, type: "comment", data: "" },
  { id: undefined, type: "message", data: '{"a":"ü€"}' },
  { id: "c1", type: "message", data: "2" },
  { id: undefined, type: "error", data: "3\n4" },
  { id: undefined, type: "message", data: "5" },
];

/** The events of a response in these pieces. */
async function read(pieces: readonly Uint8Array[]): Promise<ServerEvent[]> {
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(new Uint8Array(piece));
      controller.close();
    },
  });
  const seen: ServerEvent[] = [];
  const end = (async () => {
    for await (const event of readServerEvents(new Response(body), 10_000)) seen.push(event);
  })();
  await expect(end).rejects.toBeInstanceOf(ConnectionFailed);
  return seen;
}

describe("server-sent events", () => {
  test("are the same wherever the response is split", async () => {
    const bytes = new TextEncoder().encode(text);
    for (let cut = 0; cut <= bytes.length; cut += 1)
      expect(await read([bytes.subarray(0, cut), bytes.subarray(cut)]), `cut at ${cut}`).toEqual(events);
  });

  test("a stream without data fails", async () => {
    const silent = new Response(new ReadableStream());
    await expect(readServerEvents(silent, 1).next()).rejects.toThrow("the stream had no data for 1 ms");
  });
});
