import { type Feature, features, refusedFeature, type Verdict } from "../parse/features.ts";
import type { LayoutMode } from "../bind/databases.ts";
import { assessBatch } from "../parse/batch.ts";
import { SqlError } from "../run/sql-error.ts";
import { featuresIn } from "./features-in.ts";

/** A feature that a script uses. */
export interface Finding {
  /** Line of the script, from 1. */
  readonly line: number;
  readonly feature: string;
  readonly verdict: Verdict;
  /** Limits of the feature, or what to use in its place; the error of the statement, if it has one. */
  readonly advice: string;
}

export interface Assessment {
  /** Number of statements outside of others. */
  readonly statements: number;
  /** Ordered by lines. A supported feature is listed once, with its first line. */
  readonly findings: readonly Finding[];
  /** True if the script has more findings. */
  readonly truncated: boolean;
}

export const findingsMax = 1_000;

/**
 * Assesses a script for `sqlcmd`: batches between lines with GO. Nothing is run, and no name is resolved, so an
 * unknown table is no finding. A statement with an error is skipped, and the assessment continues with the next one.
 */
export function assessScript(script: string, layoutMode: LayoutMode = "single-db"): Assessment {
  const found = new Map<string, Finding>();
  let statements = 0;
  let truncated = false;
  const add = (feature: Feature, line: number, detail = "") => {
    const row = features.get(feature);
    if (row === undefined) return;
    const isOnce = row.verdict === "supported";
    const key = isOnce ? feature : `${line} ${feature} ${detail}`;
    if (found.has(key)) return;
    if (found.size >= findingsMax) {
      truncated = true;
      return;
    }
    const advice = detail === "" ? row.advice : detail;
    found.set(key, { line, feature, verdict: row.verdict, advice });
  };
  for (const { text, line: first } of batchesOf(script)) {
    const lineOf = (line: number) => first + Math.max(1, line) - 1;
    const onFault = (error: SqlError) => {
      const feature = refusedFeature(error) ?? "other syntax";
      const isGeneral = error.feature !== undefined && error.message === features.get(feature)?.advice;
      add(feature, lineOf(error.line), isGeneral ? "" : error.message);
    };
    try {
      const parsed = assessBatch(text, onFault);
      statements += parsed.definition === undefined ? parsed.statements.length : 1;
      for (const use of featuresIn(text, parsed, layoutMode)) add(use.feature, lineOf(use.line), use.detail);
    } catch (error) {
      if (!(error instanceof SqlError)) throw error;
      statements += 1;
      onFault(error);
    }
  }
  const findings = [...found.values()].toSorted((a, b) => a.line - b.line);
  return { statements, findings, truncated };
}

/** The batches of a script with the numbers of their first lines. */
function batchesOf(script: string): { readonly text: string; readonly line: number }[] {
  const batches: { text: string; line: number }[] = [];
  let lines: string[] = [];
  let first = 1;
  const end = (next: number) => {
    if (lines.some((line) => line.trim() !== "")) batches.push({ text: lines.join("\n"), line: first });
    lines = [];
    first = next;
  };
  for (const [index, line] of script.split("\n").entries()) {
    if (/^\s*GO(?:\s+\d+)?\s*;?\s*(?:--.*)?$/i.test(line)) end(index + 2);
    else lines.push(line);
  }
  end(0);
  return batches;
}
