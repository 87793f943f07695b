import { checkParameter } from "@holdfast/common/engine-catalog/check-parameter.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planValkeySteps } from "./valkey-plan.ts";
import { planMoments, planSteps } from "./walk-plan.ts";
import type { WalkFeature, WalkStep } from "./walk-step.ts";

const all: ReadonlySet<WalkFeature> = new Set();
const stepsOf = (seed: number, count: number, without = all) =>
  planSteps({ seed, without })
    .take(count)
    .toArray()
    .map(({ step }) => step);
const seeds = fc.integer({ min: 0, max: 1_000_000 });

describe("the plan of a walk", () => {
  it("is equal for one seed, and different for another", () => {
    expect(stepsOf(7, 200)).toEqual(stepsOf(7, 200));
    expect(stepsOf(7, 200)).not.toEqual(stepsOf(8, 200));
    expect(planMoments(7, 5)).toEqual(planMoments(7, 5));
  });

  it("contains every kind of step within a few walks", () => {
    const kinds = new Set([1, 2, 3, 4, 5].flatMap((seed) => stepsOf(seed, 200).map(({ kind }) => kind)));
    expect([...kinds].sort()).toMatchInlineSnapshot(`
      [
        "add-node",
        "advance-sequence",
        "backup",
        "begin",
        "close-database",
        "create-database",
        "create-extension",
        "create-large-object",
        "create-role",
        "create-sequence",
        "create-table",
        "create-tablespace",
        "drop-database",
        "drop-extension",
        "drop-large-object",
        "drop-role",
        "drop-table",
        "end",
        "end-prepared",
        "expand",
        "failover",
        "half-drop-database",
        "kill",
        "prepare",
        "remove-node",
        "resize",
        "rest",
        "restart",
        "rotate-key",
        "set-for-database",
        "set-parameter",
        "store-outage",
        "switchover",
      ]
    `);
  });

  it("drops, ends and advances only existing objects", () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const there = new Set<string>(["defaultdb"]);
        for (const step of stepsOf(seed, 150)) expect(faultOf(step, there), JSON.stringify(step)).toBeUndefined();
      }),
      { numRuns: 40 },
    );
  });

  it("sets parameters within the catalog's range, short plans without extremes", () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        for (const without of [all, new Set<WalkFeature>(["extreme-values"])])
          for (const step of stepsOf(seed, 100, without))
            if (step.kind === "set-parameter" && step.value !== null)
              expect(checkParameter("postgresql", "17", step.name, step.value), step.value).toMatchObject({ ok: true });
      }),
      { numRuns: 40 },
    );
  });

  it("has none of the excluded features", () => {
    const without = new Set<WalkFeature>([
      "plans",
      "half-dropped-databases",
      "recovery-parameters",
      "session-timeouts",
    ]);
    const steps = [1, 2, 3].flatMap((seed) => stepsOf(seed, 300, without));
    expect(steps.filter(({ kind }) => kind === "resize" || kind === "half-drop-database")).toEqual([]);
    const names = steps.flatMap((step) => (step.kind === "set-parameter" ? step.name : []));
    expect(names.filter((name) => /^max_(conn|locks|prep|worker)|(?<!checkpoint)_timeout$/.test(name))).toEqual([]);
    expect(names.length).toBeGreaterThan(20);
  });
});

/** Records the objects that the step creates; returns why it cannot be taken. */
function faultOf(step: WalkStep, there: Set<string>): string | undefined {
  const key = (kind: string, database: string, name: string) => `${kind} ${database} ${name}`;
  if ("database" in step && !there.has(step.database)) return "its database is not there";
  switch (step.kind) {
    case "create-database":
      there.add(step.name);
      return;
    case "drop-database":
    case "half-drop-database":
    case "close-database":
      return there.delete(step.name) ? undefined : "it is not there";
    case "create-extension":
    case "create-table":
    case "create-sequence":
    case "create-large-object": {
      const created = key(step.kind.slice("create-".length), step.database, step.name);
      if (there.has(created)) return "it is there already";
      there.add(created);
      return;
    }
    case "drop-extension":
    case "drop-table":
    case "drop-large-object":
      return there.delete(key(step.kind.slice("drop-".length), step.database, step.name))
        ? undefined
        : "it is not there";
    case "advance-sequence":
      return there.has(key("sequence", step.database, step.name)) ? undefined : "it is not there";
    case "create-role":
    case "prepare":
    case "begin":
      there.add(step.name);
      return;
    case "drop-role":
    case "end-prepared":
    case "end":
      return there.delete(step.name) ? undefined : "it is not there";
    default:
      return;
  }
}

describe("the plan of a Valkey's walk", () => {
  it("is the same for the same seed, and contains every kind of step within a few walks", () => {
    const of = (seed: number) => planValkeySteps({ seed, without: all }).take(200).toArray();
    expect(of(7)).toEqual(of(7));
    const kinds = new Set([1, 2, 3, 4, 5].flatMap((seed) => of(seed).map(({ step }) => step.kind)));
    expect([...kinds].sort()).toEqual(
      [
        "add-node",
        "backup",
        "create-user",
        "drop-user",
        "expand",
        "expire",
        "failover",
        "flush",
        "kill",
        "remove-node",
        "resize",
        "restart",
        "rest",
        "rotate-key",
        "script",
        "set-parameter",
        "store-outage",
        "switchover",
      ].sort(),
    );
  });
});
