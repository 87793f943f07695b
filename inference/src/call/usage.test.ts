import { countTokens as countWhole } from "gpt-tokenizer";
import { describe, expect, test } from "vitest";
import { countTokens, readUsage } from "./usage.ts";

describe("our own count", () => {
  test("of usual text is that of the whole", async () => {
    const text = "A latch holds a door; whoever lifts it may come in, and it falls back by itself. ".repeat(200);
    expect(await countTokens(text)).toBe(countWhole(text));
    expect(await countTokens("")).toBe(0);
    expect(await countTokens("<|endoftext|>")).toBeGreaterThan(0);
  });

  test("of a word without end takes little time, and none at a stretch", async () => {
    let turns = 0;
    const others = setInterval(() => (turns += 1), 1);
    const tokens = await countTokens("x".repeat(4 << 20));
    clearInterval(others);
    expect(tokens).toBeGreaterThan((4 << 20) / 16);
    expect(turns).toBeGreaterThan(10);
  }, 10_000);
});

describe("usage that a provider tells", () => {
  const reserved = { promptTokens: 100, completionTokens: 1_000 };

  test.each([
    ["as it is", { prompt_tokens: 5, completion_tokens: 7 }, { promptTokens: 5, completionTokens: 7 }],
    ["without an answer's tokens", { prompt_tokens: 5 }, { promptTokens: 5, completionTokens: 0 }],
    ["of nothing", { prompt_tokens: 0, completion_tokens: 0 }, { promptTokens: 0, completionTokens: 0 }],
    ["below nothing", { prompt_tokens: 5, completion_tokens: -1 }, undefined],
    ["in parts of a token", { prompt_tokens: 1.5, completion_tokens: 1 }, undefined],
    ["as text", { prompt_tokens: "5", completion_tokens: 1 }, undefined],
    ["ten times over what was reserved", { prompt_tokens: 5, completion_tokens: 10_001 }, undefined],
    ["that is none", null, undefined],
  ])("%s is read", (_, told, read) => {
    expect(readUsage(told, reserved)).toEqual(read);
  });
});
