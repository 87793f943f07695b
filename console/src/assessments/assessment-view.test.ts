import type { ScriptFinding } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { assessmentTitle, findingsByWeight, verdictTone } from "./assessment-view.ts";

const finding = (line: number, verdict: string): ScriptFinding => ({ line, verdict, feature: "f", advice: "" });
const findings = [finding(1, "supported"), finding(9, "unsupported"), finding(4, "limited"), finding(2, "unsupported")];

test("findings that prevent a move are first", () =>
  expect(findingsByWeight(findings).map(({ line }) => line)).toEqual([2, 9, 4, 1]));

test.each([
  [3, findings, "3 statements: 2 unsupported, 1 limited, 1 supported"],
  [1, [finding(1, "supported")], "1 statement: 1 supported"],
  [0, [], "0 statements"],
])("%i statements with their findings are %#", (statements, found, title) =>
  expect(assessmentTitle({ statements, findings: found, truncated: false })).toBe(title),
);

test("a verdict of a later version has no color", () => {
  expect(verdictTone(finding(1, "limited"))).toBe("warn");
  expect(verdictTone(finding(1, "later"))).toBe("none");
});
