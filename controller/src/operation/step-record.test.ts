import fc from "fast-check";
import { expect, test } from "vitest";
import { type OperationObject, operationKind, progressed, rollingBack } from "./operation.ts";
import { newOperation } from "./operation-definition.ts";
import { serviceOperations } from "#services/service/service-operations.ts";

const startedOperation = (): OperationObject =>
  newOperation({
    id: "op",
    subject: { kind: "s", id: "s" },
    organizationId: "o",
    type: serviceOperations.create,
    now: 0,
  });

const seen = fc.record({
  step: fc.constantFrom(null, "A", "B", "C", "D", "E"),
  progressPct: fc.integer({ min: 0, max: 120 }),
  mark: fc.constantFrom("", "m", "n"),
});

/** Distinct steps in the order in which they are reported. */
function observed(operations: readonly OperationObject[]): string[] {
  const steps = operations.flatMap(({ status }) => status.step ?? []);
  return steps.filter((step, index) => step !== steps[index - 1]);
}

test("steps and progress never go back, for any sequence of observations", () => {
  fc.assert(
    fc.property(fc.array(seen, { maxLength: 40 }), (all) => {
      const operations: OperationObject[] = [startedOperation()];
      for (const [index, each] of all.entries()) {
        const stored = operationKind.parse(JSON.stringify(operations.at(-1)));
        operations.push(progressed(stored, each, index));
      }
      const steps = observed(operations);
      expect(steps).toEqual([...new Set(steps)]);
      const progress = operations.map(({ status }) => status.progressPct);
      expect(progress).toEqual(progress.toSorted((a, b) => a - b));
      expect(Math.max(...progress)).toBeLessThan(100);
    }),
    { numRuns: 1_000 },
  );
});

test("a rollback has separate steps, and retains the progress", () => {
  const there = progressed(startedOperation(), { step: "A", progressPct: 70, mark: "" }, 1);
  const back = rollingBack(
    progressed(there, { step: "B", progressPct: 90, mark: "" }, 2),
    { code: "c", message: "" },
    3,
  );
  expect(progressed(back, { step: "A", progressPct: 10, mark: "" }, 4).status).toMatchObject({
    step: "A",
    progressPct: 90,
  });
});

test("an obstacle is shown while it lasts, and the blocked step afterwards", () => {
  const at = progressed(startedOperation(), { step: "A", progressPct: 50, mark: "" }, 1);
  const record = progressed(at, { step: "A", progressPct: 50, mark: "", obstacle: "WaitForHost h" }, 2);
  expect(record.status.step).toBe("WaitForHost h");
  expect(progressed(record, { step: "A", progressPct: 50, mark: "" }, 3).status.step).toBe("A");
});

test("an operation of an older version continues from its step", () => {
  const { steps: _, ...status } = progressed(startedOperation(), { step: "B", progressPct: 60, mark: "" }, 1).status;
  const older = { ...startedOperation(), status };
  expect(progressed(older, { step: "A", progressPct: 40, mark: "" }, 2).status.step).toBe("B");
  expect(progressed(older, { step: "C", progressPct: 70, mark: "" }, 2).status.step).toBe("C");
});
