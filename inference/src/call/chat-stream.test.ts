import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createChatStream } from "./chat-stream.ts";

const chunk = (content: string) =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index: 0, delta: { content } }] })}\n\n`;
const usageChunk = (completion: number) =>
  `data: ${JSON.stringify({ id: "c", choices: [], usage: { prompt_tokens: 7, completion_tokens: completion } })}\n\n`;
const done = "data: [DONE]\n\n";

/** The output when the text arrives in these pieces. */
function passed(text: string, cuts: readonly number[] = []) {
  const bytes = Buffer.from(text);
  const stream = createChatStream({ model: "p/m", count: 1 });
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
    expect(out).toBe(`${chunk("Grüß")}: comment\n\n${chunk(" dich 🙂")}`);
    fc.assert(
      fc.property(fc.array(fc.nat(1_000)), (cuts) => {
        const { out: other, stream } = passed(text, cuts);
        expect(other).toBe(out);
        expect(stream.isDone).toBe(true);
        expect(stream.usage).toEqual({ prompt_tokens: 7, completion_tokens: 3 });
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

  test.each([
    [{ total_tokens: 50 }, { prompt_tokens: 11, completion_tokens: 39, total_tokens: 50 }],
    [
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 100, x: 1 },
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 100, x: 1 },
    ],
    [
      { prompt_tokens: "7", completion_tokens: null, total_tokens: -1 },
      { prompt_tokens: 11, completion_tokens: 39, total_tokens: 50 },
    ],
  ])("with the usage %j ends with the provider's numbers", (usage, expected) => {
    const { stream } = passed(`${chunk("a")}data: ${JSON.stringify({ choices: [], usage })}\n\n${done}`);
    const [, text = ""] = /^data: (.*)\n/.exec(stream.ending({ promptTokens: 11, completionTokens: 39 })) ?? [];
    expect(JSON.parse(text)).toMatchObject({ choices: [], usage: expected });
  });

  test("reports the last usage if there are several", () => {
    expect(passed(usageChunk(1) + usageChunk(4) + done).stream.usage).toMatchObject({ completion_tokens: 4 });
  });

  test("forwards no usage within the response", () => {
    const both = `data: ${JSON.stringify({ choices: [{ delta: { content: "a" } }], usage: { prompt_tokens: 1, completion_tokens: 1 } })}\n\n`;
    expect(passed(both + done).out).toBe('data: {"choices":[{"delta":{"content":"a"}}]}\n\n');
  });

  test.each([
    ["chunks that are not JSON", "data: {no\n\n"],
    ["chunks that are not objects", "data: 7\n\n"],
    ["an error inside", 'data: {"error":{"message":"hot"}}\n\n'],
    ["an error as text", 'data: {"error":"hot"}\n\n'],
    ["an error event", "event: error\ndata: hot\n\n"],
  ])("of %s is broken", (_, text) => {
    const { out, stream } = passed(chunk("a") + text + chunk("b"));
    expect(out).toBe(chunk("a"));
    expect(stream.broken).toMatchObject({ message: expect.stringMatching(/./) });
  });

  test("may have an event of several megabytes", () => {
    const long = chunk("x".repeat(5 << 20));
    expect(passed(long + done, [70_000, 900_000, 4_000_000]).out).toBe(long);
  });

  const finished = (index: number) =>
    `data: ${JSON.stringify({ choices: [{ index, delta: {}, finish_reason: "stop" }] })}\n\n`;

  test.each([
    ["the end mark", 1, done, true],
    ["the finish reason of its choice", 1, finished(0), true],
    ["the finish reason of one of two choices", 2, finished(0), false],
    ["the finish reasons of two choices", 2, finished(1) + finished(0), true],
    ["text only", 1, chunk("a"), false],
  ])("after %s is finished for a call of %i choices: %3$s", (_, count, text, isFinished) => {
    const stream = createChatStream({ model: "p/m", count });
    stream.push(Buffer.from(text));
    expect(stream.isFinished).toBe(isFinished);
  });

  test.each([
    ["text", chunk("a"), true],
    ["a tool call", 'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c"}]}}]}\n\n', true],
    ["a role", 'data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n', false],
    ["comments", ": wait\n\n", false],
  ])("of %s has output: %3$s", (_, text, hasOutput) => {
    expect(passed(text).stream.hasOutput).toBe(hasOutput);
  });

  test("that is a page of HTML has its text", () => {
    expect(passed("<html>busy</html>").stream.otherText).toBe("<html>busy</html>");
    expect(passed(`<html>\n\n${chunk("a")}`).stream.otherText).toBe("");
  });
});
