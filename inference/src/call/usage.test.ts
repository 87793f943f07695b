import { countTokens as countAllTokens } from "gpt-tokenizer";
import { describe, expect, test } from "vitest";
import { countTokens, readUsage, usageOf } from "./usage.ts";

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
  const both = { prompt_tokens: 5, completion_tokens: 7 };

  test.each([
    ["with both parts", "chat", both, { promptTokens: 5, completionTokens: 7, cachedTokens: 0 }],
    ["without completion tokens", "chat", { prompt_tokens: 5 }, { promptTokens: 5, cachedTokens: 0 }],
    ["without prompt tokens", "chat", { completion_tokens: 7 }, { completionTokens: 7, cachedTokens: 0 }],
    [
      "with the total and the prompt",
      "chat",
      { prompt_tokens: 5, total_tokens: 12 },
      { promptTokens: 5, completionTokens: 7, cachedTokens: 0 },
    ],
    [
      "with the total and the output",
      "chat",
      { completion_tokens: 7, total_tokens: 12 },
      { promptTokens: 5, completionTokens: 7, cachedTokens: 0 },
    ],
    ["with only the total", "chat", { total_tokens: 12 }, { totalTokens: 12, cachedTokens: 0 }],
    [
      "with a total above both parts",
      "chat",
      { prompt_tokens: 10, completion_tokens: 5, total_tokens: 100 },
      { promptTokens: 10, completionTokens: 90, cachedTokens: 0 },
    ],
    [
      "with a total below both parts",
      "chat",
      { ...both, total_tokens: 3 },
      { promptTokens: 5, completionTokens: 7, cachedTokens: 0 },
    ],
    [
      "of an embedding with a total above the prompt",
      "embeddings",
      { prompt_tokens: 5, total_tokens: 12 },
      { promptTokens: 12, completionTokens: 0, cachedTokens: 0 },
    ],
    [
      "of an embedding with only the total",
      "embeddings",
      { total_tokens: 12 },
      { promptTokens: 12, completionTokens: 0, cachedTokens: 0 },
    ],
    ["of an embedding", "embeddings", { prompt_tokens: 5 }, { promptTokens: 5, completionTokens: 0, cachedTokens: 0 }],
    [
      "of zero tokens",
      "chat",
      { prompt_tokens: 0, completion_tokens: 0 },
      { promptTokens: 0, completionTokens: 0, cachedTokens: 0 },
    ],
    [
      "with a negative count",
      "chat",
      { prompt_tokens: 5, completion_tokens: -1 },
      { promptTokens: 5, cachedTokens: 0 },
    ],
    ["with fractions", "chat", { prompt_tokens: 1.5, completion_tokens: 1.5 }, undefined],
    ["as text", "chat", { prompt_tokens: "5" }, undefined],
    [
      "far above any reservation",
      "chat",
      { prompt_tokens: 5, completion_tokens: 900_000 },
      { promptTokens: 5, completionTokens: 900_000, cachedTokens: 0 },
    ],
    ["beyond any count of tokens", "chat", { prompt_tokens: 9e15, completion_tokens: 9e15 }, undefined],
    [
      "with cached tokens",
      "chat",
      { ...both, prompt_tokens_details: { cached_tokens: 4 } },
      { promptTokens: 5, completionTokens: 7, cachedTokens: 4 },
    ],
    ["that is null", "chat", null, undefined],
  ] as const)("%s is read", (_, kind, reported, expected) => {
    expect(readUsage(kind, reported)).toEqual(expected);
  });

  const call = {
    kind: "chat",
    reserved: { promptTokens: 100, completionTokens: 10 },
    price: { input: 2, output: 3, cachedInput: 1, maxOutputTokens: 10 },
    text: "one two three",
  } as const;

  test("is charged as reported, above the reservation too", async () => {
    const used = await usageOf({ promptTokens: 60_000, completionTokens: 15, cachedTokens: 0 }, call);
    expect(used).toEqual({
      promptTokens: 60_000,
      completionTokens: 15,
      costMicrocents: 120_045,
      estimated: false,
      aboveReservation: true,
    });
  });

  test.each([
    // total, text, prompt, completion
    [150, "one two three", 100, 50],
    [30, "one two three", 27, 3],
    [2, "one two three", 0, 2],
    [0, "one two three", 0, 0],
    [5_000, "", 100, 4_900],
  ])("of %i tokens in total with the text %j is charged as %i + %i", async (totalTokens, text, prompt, completion) => {
    const used = await usageOf({ totalTokens, cachedTokens: 0 }, { ...call, text });
    expect(used).toMatchObject({ promptTokens: prompt, completionTokens: completion, estimated: true });
    expect(used.aboveReservation).toBe(totalTokens > 110 ? true : undefined);
  });

  test("has a separate price for cached tokens", async () => {
    const used = await usageOf({ promptTokens: 50, completionTokens: 0, cachedTokens: 40 }, call);
    expect(used.costMicrocents).toBe(60);
  });

  test("is completed by an estimate within the reservation", async () => {
    expect(await usageOf({ promptTokens: 5, cachedTokens: 0 }, call)).toMatchObject({
      promptTokens: 5,
      completionTokens: 3,
      estimated: true,
    });
    expect(await usageOf(undefined, { ...call, text: "many words ".repeat(100) })).toMatchObject({
      promptTokens: 100,
      completionTokens: 10,
      estimated: true,
    });
  });
});
