import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkCall, estimateCall } from "./check-call.ts";
import { membersOf, nestsDeeper } from "./json-text.ts";
import { upstreamBody } from "./upstream-body.ts";

const messages = [{ role: "user", content: "hello" }];
const chat = (more: object) => JSON.stringify({ model: "provider_a/large", messages, ...more });

describe("a call", () => {
  test("is parsed with its model separate from the prefix", () => {
    expect(checkCall("chat", chat({ stream: true, max_tokens: 5, n: 2 }))).toMatchObject({
      provider: "provider_a",
      model: "large",
      stream: true,
      maxTokens: 5,
      count: 2,
    });
    expect(checkCall("embeddings", '{"model":"p/a/b","input":["x"]}')).toMatchObject({ provider: "p", model: "a/b" });
  });

  test.each([
    ["no JSON", "{", undefined],
    ["no object", "[]", undefined],
    ["no model", JSON.stringify({ messages }), "model"],
    ["no prefix", chat({ model: "large" }), "model"],
    ["an empty prefix", chat({ model: "/large" }), "model"],
    ["an empty name", chat({ model: "provider_a/" }), "model"],
    ["a model that is not plain text", chat({ model: "provider_a/lar\nge" }), "model"],
    ["no messages", chat({ messages: [] }), "messages"],
    ["a message that is none", chat({ messages: ["hello"] }), "messages[0]"],
    ["content of another kind", chat({ messages: [{ role: "user", content: 7 }] }), "messages[0].content"],
    ["a stream that is not a boolean", chat({ stream: "yes" }), "stream"],
    ["half a choice", chat({ n: 0.5 }), "n"],
    ["less than no tokens", chat({ max_completion_tokens: -1 }), "max_completion_tokens"],
    ["an API key", chat({ api_key: "mine" }), "api_key"],
    ["a base URL", chat({ base_url: "https://elsewhere.example" }), "base_url"],
    ["lists in lists", chat({ metadata: "@" }).replace('"@"', "[".repeat(5_000) + "]".repeat(5_000)), undefined],
    ["objects without an end", '{"a":'.repeat(2_000_000), undefined],
    ["a text without an end", '{"a":"\\"', undefined],
    ["a model twice", `{"model":"a/b","messages":[{"role":"user"}],"mod\\u0065l":"c/d"}`, "model"],
  ])("with %s is refused with the reason", (_, text, param) => {
    expect(checkCall("chat", text)).toMatchObject({ status: 400, code: "invalid_model", ...(param && { param }) });
  });

  test("is estimated by its body and its own limit", () => {
    const call = checkCall("chat", chat({ max_tokens: 10, n: 3 }));
    if ("code" in call) throw new Error(call.message);
    // user, hello and the names of both members have 20 bytes.
    expect(estimateCall(call, 4_096)).toEqual({ promptTokens: 7 + 4, completionTokens: 30 });
  });

  test("with an image counts it as such", () => {
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(90_000)}` } };
    const call = checkCall("chat", chat({ messages: [{ role: "user", content: [image] }] }));
    if ("code" in call) throw new Error(call.message);
    expect(estimateCall(call, 100).promptTokens).toBeLessThan(2_100);
    expect(estimateCall(call, 100).promptTokens).toBeGreaterThan(2_000);
  });
});

test("the members of any object are where its values are", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.constantFrom(0, 1, "\t"), (object, space) => {
      const json = JSON.stringify(object, null, space);
      const { values, duplicate } = membersOf(json);
      expect(duplicate).toBe(undefined);
      expect([...values].map(([key, { start, end }]) => [key, JSON.parse(json.slice(start, end)) as unknown])).toEqual(
        Object.entries(JSON.parse(json) as object),
      );
    }),
  );
});

describe("the body for a provider", () => {
  const bodyOf = (text: string) => {
    const call = checkCall("chat", text);
    if ("code" in call && "status" in call) throw new Error(call.message);
    return upstreamBody(call);
  };

  test.each([
    [
      "numbers and order",
      '{ "seed" : 90071992547409931234, "model":"p/a/b","top_p":1.0,\n"messages":[{"role":"user"}], "x":1e400 }',
      '{ "seed" : 90071992547409931234, "model":"a/b","top_p":1.0,\n"messages":[{"role":"user"}], "x":1e400 }',
    ],
    [
      "an escaped key",
      '{"mod\\u0065l":"p/m","messages":[{"role":"user"}]}',
      '{"mod\\u0065l":"m","messages":[{"role":"user"}]}',
    ],
    [
      "a stream without options",
      '{"stream":true,"model":"p/m","messages":[{"role":"user"}]}',
      '{"stream":true,"model":"m","stream_options":{"include_usage":true},"messages":[{"role":"user"}]}',
    ],
    [
      "a stream with options",
      '{"stream_options":{"include_usage":false,"x":1},"model":"p/m","messages":[{"role":"user"}],"stream":true}',
      '{"stream_options":{"include_usage":true,"x":1},"model":"m","messages":[{"role":"user"}],"stream":true}',
    ],
  ])("has the client's text with %s", (_, text, expected) => {
    expect(bodyOf(text)).toBe(expected);
  });
});

test.each([
  ['{"a":1,"b":{"a":2},"c":[{"a":3}]}', undefined],
  ['{"a":1,"b":2,"a":3}', "a"],
  ['{"a":"\\"a\\":","b":"{","a":3}', "a"],
  ['{"a,":1,"a":["a"],"b":"a"}', undefined],
])("the doubled key of %s is %s", (json, key) => {
  expect(membersOf(json).duplicate).toBe(key);
});

test.each([
  ['{"a":[{"b":1}]}', 3, false],
  ['{"a":[{"b":1}]}', 2, true],
  ['["[[[[", "\\"[[["]', 1, false],
  ['["[[', 1, false],
  ["[[],[],[]]", 2, false],
])("%s nests deeper than %i: %s", (json, most, is) => {
  expect(nestsDeeper(json, most)).toBe(is);
});
