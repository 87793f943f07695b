import type { ScriptAssessment, ScriptFinding } from "@holdfast/sdk/responses.ts";
import type { Tone } from "../tone.ts";

// biome-ignore format: a table, aligned so that it reads as one
const verdictTones: ReadonlyMap<string, Tone> = new Map([
  ["supported",   "good"],
  ["limited",     "warn"],
  ["unsupported", "bad"],
]);

export function verdictTone({ verdict }: Pick<ScriptFinding, "verdict">): Tone {
  return verdictTones.get(verdict) ?? "none";
}

const order = ["unsupported", "limited", "supported"];

/** Findings, those that prevent a move first, then by line. */
export function findingsByWeight(findings: readonly ScriptFinding[]): readonly ScriptFinding[] {
  return findings.toSorted(
    (one, other) => order.indexOf(one.verdict) - order.indexOf(other.verdict) || one.line - other.line,
  );
}

/** The result in one sentence: "12 statements: 1 feature unsupported, 2 limited, 5 supported". */
export function assessmentTitle({ statements, findings }: ScriptAssessment): string {
  const parts = order.flatMap((verdict) => {
    const count = findings.filter((finding) => finding.verdict === verdict).length;
    return count === 0 ? [] : [`${count} ${verdict}`];
  });
  const head = `${statements} ${statements === 1 ? "statement" : "statements"}`;
  return parts.length === 0 ? head : `${head}: ${parts.join(", ")}`;
}
