import { expect, test } from "vitest";
import { errorInAnswer, errorInRefusal } from "./provider-error.ts";

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
  ["a list of errors", { errors: [{ message: "hot", code: "c" }, { message: "cold" }] }, { message: "hot", code: "c" }],
  ["a list of texts as errors", { errors: ["hot"] }, { message: "hot" }],
  ["a problem with a title only", { type: "about:blank", title: "hot" }, { message: "hot", type: "about:blank" }],
])("the error of %s is read", (_, body, expected) => {
  expect(errorInAnswer(JSON.stringify(body))).toEqual(expected);
  expect(errorInRefusal(JSON.stringify(body))).toEqual(expected);
  expect(errorInRefusal(`\ufeff${JSON.stringify(body)}`)).toEqual(expected);
});

const long = JSON.stringify({ error: { type: "t", message: "too hot: \u00fc", echo: "x".repeat(70_000) } });

test.each([
  ["a plain text", "plain text reason\n", { message: "plain text reason" }],
  ["a long text", "x".repeat(5_000), { message: "x".repeat(200) }],
  ["JSON of no known form", '{"reason":"no credits"}', { message: '{"reason":"no credits"}' }],
  ["JSON that is cut off", long.slice(0, 65_536), { message: "too hot: ü" }],
  ["JSON that is cut off in its message", '{"error":{"message":"too \\u00', { message: "too " }],
  ["JSON that is cut off before its message", '{"error":{"mess', { message: '{"error":{"mess' }],
  ["nothing", "", undefined],
  ["tags only", "<html></html>", undefined],
])("the error of a refusal with %s is read", (_, text, expected) => {
  expect(errorInRefusal(text)).toEqual(expected);
});

test("a completion, or a part of one, is no message", () => {
  expect(errorInAnswer('{"choices":[]}')).toBe(undefined);
  for (const mark of ["", "\ufeff", " \n"])
    expect(errorInAnswer(`${mark}{"id":"c1","choices":[{"message":{"content":"Hel`)).toEqual({
      message: "The provider's response is incomplete: it is not valid JSON.",
    });
});

test("a page of HTML is an error without its tags", () => {
  const page = "<html><style>p {}</style><h1>502 Bad\u0000 Gateway</h1>\n<p>nginx</p>";
  expect(errorInAnswer(page)).toEqual({ message: "502 Bad Gateway nginx" });
  expect(errorInRefusal(page)).toEqual({ message: "502 Bad Gateway nginx" });
  expect(errorInAnswer("")).toBe(undefined);
});
