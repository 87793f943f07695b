import { countTokens as countAllTokens } from "gpt-tokenizer";
import { describe, expect, test } from "vitest";
import { countTokens, readUsage } from "./usage.ts";

describe("the own token count", () => {
  test("of ordinary text equals that of the complete text", async () => {
    const text = "A latch holds a door; anyone who lifts it may enter, and it falls back by itself. ".repeat(200);
    expect(await countTokens(text)).toBe(countAllTokens(text));
    expect(await countTokens("")).toBe(0);
    expect(await countTokens("<|endoftext|>")).toBeGreaterThan(0);
  });

  test("of an endless word is fast and yields to the event loop", async () => {
    let iterations = 0;
    const others = setInterval(() => (iterations += 1), 1);
    const tokens = await countTokens("x".repeat(4 << 20));
    clearInterval(others);
    expect(tokens).toBeGreaterThan((4 << 20) / 16);
    expect(iterations).toBeGreaterThan(10);
  }, 10_000);
});

describe("usage that a provider reports", () => {
  const reserved = { promptTokens: 100, completionTokens: 1_000 };

  test.each([
    ["as integers", { prompt_tokens: 5, completion_tokens: 7 }, { promptTokens: 5, completionTokens: 7 }],
    ["without completion tokens", { prompt_tokens: 5 }, { promptTokens: 5, completionTokens: 0 }],
    ["of zero tokens", { prompt_tokens: 0, completion_tokens: 0 }, { promptTokens: 0, completionTokens: 0 }],
    ["with a negative count", { prompt_tokens: 5, completion_tokens: -1 }, undefined],
    ["with fractions", { prompt_tokens: 1.5, completion_tokens: 1 }, undefined],
    ["as text", { prompt_tokens: "5", completion_tokens: 1 }, undefined],
    ["above ten times the reservation", { prompt_tokens: 5, completion_tokens: 10_001 }, undefined],
    ["that is null", null, undefined],
  ])("%s is read", (_, reported, expected) => {
    expect(readUsage(reported, reserved)).toEqual(expected);
  });
});
