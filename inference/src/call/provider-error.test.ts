import { expect, test } from "vitest";
import { providerErrorIn } from "./provider-error.ts";

test.each([
  [
    "an error object",
    { error: { message: "hot", type: "t", code: "c", param: "p" } },
    { message: "hot", type: "t", code: "c", param: "p" },
  ],
  ["a number as code", { error: { message: "hot", code: 429 } }, { message: "hot", code: "429" }],
  ["a text as error", { error: "hot" }, { message: "hot" }],
  [
    "a message",
    { object: "error", message: "hot", type: "t", code: 40_001 },
    { message: "hot", type: "t", code: "40001" },
  ],
  ["a text as detail", { detail: "hot" }, { message: "hot" }],
  [
    "invalid members",
    { detail: [{ loc: ["body", "messages", 0], msg: "too hot" }] },
    { message: "too hot", param: "messages.0" },
  ],
  ["an object as detail", { detail: { message: "hot", code: "c" } }, { message: "hot", code: "c" }],
  ["a list", [{ error: { message: "hot", status: "X" } }], { message: "hot" }],
  ["an error without a message", { error: { reason: "heat" } }, { message: '{"reason":"heat"}' }],
  ["a long message", { error: { message: "x".repeat(5_000) } }, { message: "x".repeat(1_000) }],
  ["a completion", { choices: [] }, undefined],
])("the error of %s is read", (_, body, expected) => {
  expect(providerErrorIn(JSON.stringify(body))).toEqual(expected);
});

test("a page of HTML is an error without its tags", () => {
  const page = "<html><style>p {}</style><h1>502 Bad\u0000 Gateway</h1>\n<p>nginx</p>";
  expect(providerErrorIn(page)).toEqual({ message: "502 Bad Gateway nginx" });
  expect(providerErrorIn("")).toBe(undefined);
});
