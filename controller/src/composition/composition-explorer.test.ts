import fc from "fast-check";
import { expect, test } from "vitest";
import { createResourceKinds } from "#resource-kind/resource-kinds.ts";
import { fixtureKind } from "@holdfast/testing/composition/fixture-kind.ts";
import { createResourceModel, type ResourceModel } from "@holdfast/testing/composition/resource-model.ts";
import type { CompositionObject, CompositionSealer, DesiredMember, BundleKind, Member } from "./composition.ts";
import { afterFailure, planComposition } from "./composition-plan.ts";
import type { CompositionStep } from "./composition-step.ts";
import { deletionRequested, newComposition, redeployed } from "./deploy.ts";
import { planStackUpgrade, upgradeRequested } from "./upgrade.ts";
import { endUpgrade } from "./upgrade-plan.ts";

// Explores the histories of a composition: two controllers that interleave reads and writes, each with a memory of its
// own, crashes before and after each write, lost responses, resources that fail, vanish or are late, and an abort and a
// deletion at any time.

const kinds = createResourceKinds([fixtureKind]);
const seal: CompositionSealer = {
  seal: (_, spec) => JSON.stringify(spec),
  spec: (_, sealed) => JSON.parse(sealed),
  desired: ({ spec }) => JSON.parse(spec.sealedDesired),
};

const specOf = (each: Member) => seal.spec("", each.sealedSpec);

const member = (name: string, needs: readonly string[] = [], image = "a"): DesiredMember => ({
  name,
  kind: "fixture",
  writtenKind: "fixture",
  spec: { image, plan_name: "tier-1" },
  needs,
  attachments: [],
});

/** A model of etcd for two controllers: a value with its revision. */
interface Cell {
  composition: CompositionObject | undefined;
  revision: number;
}

interface Run {
  readonly cell: Cell;
  readonly scenario: ResourceModel;
  readonly changesSucceed: boolean;
  /** Number of changes requested from each resource. */
  readonly acts: Map<string, number>;
  /** True after an abort was acknowledged. */
  isAborted: boolean;
  now: number;
}

/** Performs one step of a controller that read the cell at a revision; false on a conflict, as etcd reports it. */
function perform(run: Run, read: Cell, step: CompositionStep): boolean {
  const { cell, scenario } = run;
  if (step.kind === "wait") return true;
  // A removal is not fenced by the composition.
  if (step.kind === "remove") {
    scenario.remove(step.member.id);
    return true;
  }
  if (cell.revision !== read.revision) return false;
  cell.revision += 1;
  if (step.kind === "forget") cell.composition = undefined;
  else cell.composition = step.after;
  if (step.kind === "create") scenario.create(step.member.id);
  if (step.kind === "act") {
    scenario.act(step.member.id, run.changesSucceed);
    run.acts.set(step.member.id, (run.acts.get(step.member.id) ?? 0) + 1);
  }
  if (step.kind === "undo") scenario.act(step.member.id, true);
  return true;
}

function planned(run: Run, { composition }: Cell): CompositionStep {
  if (composition === undefined) return { kind: "wait", forMs: undefined };
  return planComposition(composition, run.scenario.observe, run.now);
}

function checkAlways({ cell, scenario }: Run): void {
  for (const count of scenario.created.values()) expect(count).toBe(1);
  const known = new Set(cell.composition?.status.members.map(({ id }) => id));
  // Every existing resource is recorded: there are no orphans.
  for (const id of scenario.records.keys()) expect(known).toContain(id);
}

/** Runs to the end with one controller that does not crash. */
function settle(run: Run): void {
  for (let round = 0; round < 400; round += 1) {
    const read = { ...run.cell };
    const step = planned(run, read);
    if (step.kind !== "wait") perform(run, read, step);
    else if (!run.scenario.advance(() => 0, { fails: false, vanishes: false })) {
      if (step.forMs === undefined || run.cell.composition?.status.deadline == null) return;
      run.now += 11 * 60_000;
    }
    checkAlways(run);
  }
  throw new Error(`it does not end: ${JSON.stringify(run.cell.composition?.status)}`);
}

interface Choice {
  readonly kind: "read" | "write" | "stir" | "abort" | "delete" | "refuse" | "late";
  readonly who: 0 | 1;
  readonly pick: number;
  readonly fails: boolean;
  readonly vanishes: boolean;
  /** The controller crashes between its read and its write. */
  readonly crashes: boolean;
}

const choice: fc.Arbitrary<Choice> = fc.record({
  kind: fc.oneof(
    { weight: 6, arbitrary: fc.constant("read" as const) },
    { weight: 6, arbitrary: fc.constant("write" as const) },
    { weight: 4, arbitrary: fc.constant("stir" as const) },
    { weight: 1, arbitrary: fc.constantFrom("abort" as const, "delete" as const, "refuse" as const, "late" as const) },
  ),
  who: fc.constantFrom(0, 1),
  pick: fc.nat(20),
  fails: fc.boolean(),
  vanishes: fc.boolean(),
  crashes: fc.boolean(),
});

function explore(run: Run, choices: readonly Choice[]): void {
  const reads: (Cell | undefined)[] = [undefined, undefined];
  for (const { kind, who, pick, fails, vanishes, crashes } of choices) {
    const { cell, scenario } = run;
    if (kind === "read") reads[who] = crashes ? undefined : { ...cell };
    const read = reads[who];
    if (kind === "write" && read !== undefined) {
      perform(run, read, planned(run, read));
      // The response is lost, or the controller crashes: it reads again, or retries the same write.
      if (crashes) reads[who] = undefined;
    }
    if (kind === "stir")
      scenario.advance((count) => pick % Math.max(1, count), {
        fails: fails && pick % 3 === 0,
        vanishes: vanishes && pick % 7 === 0,
      });
    if (kind === "late") run.now += 11 * 60_000;
    const { composition } = cell;
    if (composition !== undefined) {
      const write = (after: CompositionObject | undefined) => {
        if (after === undefined) return;
        cell.composition = after;
        cell.revision += 1;
      };
      const isBusy = composition.status.deadline !== null;
      if (kind === "abort" && isBusy && composition.status.state !== "RollingBack") {
        write({ ...composition, status: { ...composition.status, isAborted: true } });
        run.isAborted = true;
      }
      if (kind === "delete") write(deletionRequested(composition, run.now));
      if (kind === "refuse" && read !== undefined && read.revision === cell.revision) {
        const step = planned(run, read);
        if (step.kind === "create" || step.kind === "act") {
          const upgrading = composition.status.state === "Upgrading";
          const failure = { cause: "failed" as const, reason: "refused" };
          const ended = upgrading
            ? endUpgrade(composition, "refused", run.now)
            : afterFailure(composition, failure, run.now);
          if (ended.kind === "record") write(ended.after);
        }
      }
    }
    checkAlways(run);
  }
}

function launched(kind: BundleKind, members: readonly DesiredMember[]): Run {
  let n = 0;
  const context = { kinds, seal, deploymentId: "d1", newId: () => `r${(n += 1)}`, now: 0 };
  const requests = { id: "c", organizationId: "o", name: "shop", kind, members, monthlyCents: 0 };
  return {
    cell: { composition: newComposition(requests, context), revision: 1 },
    scenario: createResourceModel(),
    changesSucceed: true,
    acts: new Map(),
    isAborted: false,
    now: 0,
  };
}

const members = [member("a"), member("b", ["a"]), member("c", ["a", "b"]), member("d")];
const ends = new Set(["Running", "Failed"]);

test.each(["project", "stack"] as const)(
  "a first deployment of a %s completes or rolls back: no orphan, no duplicate, an end state",
  (kind) => {
    fc.assert(
      fc.property(fc.array(choice, { maxLength: 60 }), (choices) => {
        const run = launched(kind, members);
        explore(run, choices);
        settle(run);
        const { composition } = run.cell;
        if (composition === undefined || composition.status.state === "Deleted")
          expect(run.scenario.records.size).toBe(0);
        else {
          expect(ends).toContain(composition.status.state);
          if (run.isAborted) expect(composition.status.state).toBe("Failed");
          if (composition.status.state === "Failed" && !composition.status.hasRun) {
            expect(run.scenario.records.size).toBe(0);
            expect(composition.status.members).toEqual([]);
          }
        }
      }),
      { numRuns: 400 },
    );
  },
);

test("a later deployment never removes existing resources, unless the composition is deleted", () => {
  fc.assert(
    fc.property(fc.array(choice, { maxLength: 60 }), fc.boolean(), (choices, changesSucceed) => {
      const run: Run = { ...launched("project", [member("a"), member("b", ["a"])]), changesSucceed };
      settle(run);
      const before = run.cell.composition;
      expect(before?.status.state).toBe("Running");
      if (before === undefined) return;
      let n = 100;
      const desired = [member("a", [], "b"), member("b", ["a"]), member("e", ["b"])];
      const update = {
        name: "a",
        kind: "fixture",
        action: "update" as const,
        changes: [{ path: "image", before: null, after: null }],
      };
      const rest = { pendingChanges: [], reason: null, drift: [], monthlyCents: 0 };
      const plan = {
        entries: [{ ...update, ...rest }],
        digest: "",
        monthlyCents: 0,
        beforeCents: 0,
        warnings: [],
        faults: [],
      };
      const context = {
        kinds,
        seal,
        observe: run.scenario.observe,
        deploymentId: "d2",
        newId: () => `r${(n += 1)}`,
        now: run.now,
      };
      run.cell.composition = redeployed(before, desired, plan, context).after;
      run.cell.revision += 1;
      const stayed = new Set(run.scenario.records.keys());
      // Resources that vanish, or are deleted with the composition, are not removed by the deployment.
      explore(
        run,
        choices.filter(({ kind, vanishes }) => kind !== "delete" && !vanishes),
      );
      settle(run);
      for (const id of stayed) expect([...run.scenario.records.keys()]).toContain(id);
      expect(ends).toContain(run.cell.composition?.status.state);
      if (run.isAborted) expect(run.cell.composition?.status.state).toBe("Failed");
    }),
    { numRuns: 400 },
  );
});

test("an upgrade ends with a running stack, changes each resource once, and loses none", () => {
  fc.assert(
    fc.property(fc.array(choice, { maxLength: 60 }), fc.boolean(), (choices, changesSucceed) => {
      const run: Run = { ...launched("stack", members), changesSucceed };
      settle(run);
      const before = run.cell.composition;
      if (before === undefined) throw new Error("the stack runs");
      const newer = members.map((each) => ({ ...each, spec: { ...each.spec, image: "b" } }));
      const descriptor = { name: "shop", members: newer };
      const changes = planStackUpgrade(before.status.members, descriptor, kinds, specOf);
      const upgrade = { monthlyCents: 1, acceptedCents: 1, template: { name: "t", version: "2" } };
      run.cell.composition = upgradeRequested(before, descriptor, changes, {
        deploymentId: "d2",
        upgrade,
        seal,
        now: run.now,
      });
      run.cell.revision += 1;
      const stayed = [...run.scenario.records.keys()];
      // An upgrade cannot be aborted.
      explore(
        run,
        choices.filter(({ kind, vanishes }) => kind !== "abort" && !vanishes),
      );
      settle(run);
      for (const count of run.acts.values()) expect(count).toBe(1);
      const { composition } = run.cell;
      if (composition === undefined) {
        expect(run.scenario.records.size).toBe(0);
        return;
      }
      expect([...run.scenario.records.keys()]).toEqual(stayed);
      expect(composition.status).toMatchObject({ state: "Running" });
      expect(composition.status.members.every(({ change }) => change === undefined)).toBe(true);
      const versions = composition.status.members.map((each) => specOf(each)["image"]);
      // Completely, or up to the failed step.
      expect(versions.toSorted().toReversed()).toEqual(versions);
      const isComplete = composition.spec.template?.version === "2";
      expect(isComplete).toBe(versions.every((version) => version === "b"));
    }),
    { numRuns: 400 },
  );
});

test("an undisturbed pipeline becomes complete, and a deleted one is removed", () => {
  fc.assert(
    fc.property(fc.array(choice, { maxLength: 40 }), (choices) => {
      const run = launched("pipeline", members);
      explore(
        run,
        choices.filter(({ fails, vanishes }) => !fails && !vanishes),
      );
      settle(run);
      if (run.cell.composition === undefined) expect(run.scenario.records.size).toBe(0);
      else expect([run.cell.composition.status.state, run.scenario.records.size]).toEqual(["Running", 4]);
    }),
    { numRuns: 250 },
  );
});

test("the explorer finds a planted fault: a creation that is not fenced by the record", () => {
  const careless = () =>
    fc.assert(
      fc.property(fc.array(choice, { minLength: 20, maxLength: 60 }), (choices) => {
        const run = launched("project", members);
        const reads: (Cell | undefined)[] = [undefined, undefined];
        for (const { kind, who } of choices) {
          if (kind === "read") reads[who] = { ...run.cell };
          const read = reads[who];
          if (kind === "delete" && run.cell.composition !== undefined) {
            run.cell.composition = deletionRequested(run.cell.composition, 0) ?? run.cell.composition;
            run.cell.revision += 1;
          }
          if (kind !== "write" || read === undefined) continue;
          const step = planned(run, read);
          // The resource is created first and recorded afterwards.
          if (step.kind === "create") run.scenario.create(step.member.id);
          else perform(run, read, step);
          if (step.kind === "create" && run.cell.revision === read.revision) {
            run.cell.composition = step.after;
            run.cell.revision += 1;
          }
          checkAlways(run);
        }
      }),
      { numRuns: 3_000 },
    );
  expect(careless).toThrow();
});
