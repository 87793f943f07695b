import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createChatStream, StreamBroken } from "./chat-stream.ts";

const reserved = { promptTokens: 100, completionTokens: 100 };
const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content } }] })}\n\n`;
const usageChunk = (completion: number) =>
  `data: ${JSON.stringify({ id: "c", choices: [], usage: { prompt_tokens: 7, completion_tokens: completion } })}\n\n`;
const done = "data: [DONE]\n\n";

/** The output when the text arrives in these pieces. */
function passed(text: string, cuts: readonly number[] = []) {
  const bytes = Buffer.from(text);
  const stream = createChatStream(reserved, "p/m");
  const ends = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].toSorted((a, b) => a - b);
  let out = "";
  let from = 0;
  for (const end of [...ends, bytes.length]) {
    out += stream.push(bytes.subarray(from, end));
    from = end;
  }
  return { out, stream };
}

describe("a stream", () => {
  test("is forwarded identically in any segmentation", () => {
    const text = `${chunk("Grüß")}: comment\n\n${chunk(" dich 🙂")}${usageChunk(3)}${done}`;
    const { out } = passed(text);
    expect(out).toBe(chunk("Grüß") + chunk(" dich 🙂"));
    fc.assert(
      fc.property(fc.array(fc.nat(1_000)), (cuts) => {
        const { out: other, stream } = passed(text, cuts);
        expect(other).toBe(out);
        expect(stream.isDone).toBe(true);
        expect(stream.usage).toEqual({ promptTokens: 7, completionTokens: 3 });
        expect(stream.text).toBe("Grüß dich 🙂");
      }),
      { numRuns: 200 },
    );
  });

  test("ends with one usage chunk and the end mark", () => {
    const { stream } = passed(chunk("a") + usageChunk(3) + done);
    expect(stream.ending({ promptTokens: 7, completionTokens: 3 })).toMatch(
      /^data: \{.*"choices":\[\],"usage":\{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10\}\}\n\ndata: \[DONE\]\n\n$/,
    );
  });

  test("reports the last usage if there are several", () => {
    expect(passed(usageChunk(1) + usageChunk(4) + done).stream.usage?.completionTokens).toBe(4);
  });

  test("forwards no usage within the response", () => {
    const both = `data: ${JSON.stringify({ choices: [{ delta: { content: "a" } }], usage: { prompt_tokens: 1, completion_tokens: 1 } })}\n\n`;
    expect(passed(both + done).out).toBe('data: {"choices":[{"delta":{"content":"a"}}]}\n\n');
  });

  test.each([
    ["chunks that are not JSON", "data: {no\n\n"],
    ["chunks that are not objects", "data: 7\n\n"],
    ["an error inside", 'data: {"error":{"message":"hot"}}\n\n'],
    ["an event without end", `data: ${"x".repeat((1 << 20) + 10)}`],
  ])("of %s is broken", (_, text) => {
    expect(() => passed(text)).toThrow(StreamBroken);
  });
});
