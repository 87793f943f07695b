import { expect, test } from "vitest";
import { examinePayloads } from "./examine-payloads.ts";

const judged = (...texts: string[]) => examinePayloads(texts.map((text) => Buffer.from(text)));
const deep = (levels: number) => `{"a":${"[".repeat(levels)}${"]".repeat(levels)}}`;

test.each([
  ["{}"],
  ['{"n":12345678901234567890.123456789,"e":1e308,"text":"1e99999 \\\\u0000 \\"{"}'],
  [deep(62)],
  ['{"pair":"\\ud83d\\ude00"}'],
])("%s is a payload", (text) => {
  expect(judged(text)).toEqual({ faults: [], large: [] });
});

test.each([
  ["[]", "wrong_type"],
  ["null", "wrong_type"],
  ["{", "invalid_json"],
  ['{"a":"\\u0000"}', "invalid_text"],
  ['{"a\\u0000":1}', "invalid_text"],
  ['{"a":["\\ud83d"]}', "invalid_text"],
  ['{"a":1e1001}', "out_of_range"],
  ['{"a":-1.5E-2000}', "out_of_range"],
  [deep(64), "too_deep"],
])("%s is none: %s", (text, code) => {
  expect(judged("{}", text).faults).toMatchObject([{ field: "messages[1].payload", code }]);
});

test("each oversized payload is named, also when only its written form is oversized", () => {
  const largest = `{"a":"${"x".repeat(262_144 - 8)}"}`;
  const long = `{"a":[${Array.from({ length: 300 }, () => "1e999").join(",")}]}`;
  expect(judged(largest, "{}").large).toEqual([]);
  expect(judged("{}", `${largest} `, long).large).toEqual([1, 2]);
});
