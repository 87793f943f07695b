import { describe, expect, test } from "vitest";
import { type AgentRollout, isLater, newRollout, withEvent, withRelease } from "./agent-rollout.ts";
import { upgradeTaskId } from "./agent-facts.ts";
import { type AgentFacts, planAgentRollout, stateOf } from "./agent-rollout-plan.ts";
import type { RolloutRate } from "./rollout-rate.ts";

const release = { release: "2.0.0", digest: "new", payloadId: "p", sha256: "s", sizeBytes: 1 };
const rate: RolloutRate = { shares: [10, 50, 100], soakMs: 1_000, failurePct: 2, concurrency: 8 };

/** A simulated fleet whose upgrades succeed, except for the named machines. */
function fleetOf(count: number, change: (id: string) => Partial<AgentFacts> | undefined = () => undefined) {
  let rollout: AgentRollout = newRollout(release, 0);
  let now = 0;
  const digests = new Map(Array.from({ length: count }, (_, n) => [`m-${n}`, "old"]));
  const tasks = new Map<string, AgentFacts["task"]>();
  const events: string[] = [];
  const started: string[][] = [];

  const factsOf = (machineId: string): AgentFacts => ({
    machineId,
    isWaiting: false,
    online: true,
    digest: digests.get(machineId) ?? "",
    canHandOver: true,
    healthy: true,
    ...change(machineId),
    task: tasks.get(upgradeTaskId(rollout, machineId)),
  });
  const facts = () => [...digests.keys()].map(factsOf);

  /** Plans once; upgrades that it starts are done at the next call. */
  function step(): void {
    const plan = planAgentRollout(rollout, facts(), rate, now);
    rollout = { ...rollout, status: plan.status };
    if (plan.event !== undefined) {
      events.push(plan.event);
      rollout = withEvent(rollout, plan.event, now, plan.reason) ?? rollout;
    }
    if (plan.begin.length > 0) started.push([...plan.begin]);
    for (const id of plan.begin) {
      const outcome = change(id)?.task ?? { status: "completed" as const };
      tasks.set(upgradeTaskId(rollout, id), outcome);
      if (outcome.status === "completed" && change(id)?.digest === undefined) digests.set(id, rollout.spec.digest);
    }
    now = Math.max(now + 1, plan.recheckAt ?? now + 100);
  }

  function run(looks = 500): void {
    for (let look = 0; look < looks && rollout.status.state === "Rolling"; look += 1) step();
  }

  return {
    run,
    step,
    events,
    started,
    digests,
    states: () => facts().map((agent) => stateOf(rollout, agent)),
    get rollout() {
      return rollout;
    },
    set rollout(value: AgentRollout) {
      rollout = value;
    },
    get now() {
      return now;
    },
  };
}

const failing = {
  task: { status: "failed", reason: "It ended with 1.", retryable: false, isMachineFault: false },
} as const;

describe("a rollout", () => {
  test("upgrades one machine, then each share, within the limit, with a soak time per stage", () => {
    const fleet = fleetOf(100);
    fleet.run();
    expect(fleet.rollout.status.state).toBe("Completed");
    expect([...fleet.digests.values()].every((digest) => digest === "new")).toBe(true);
    expect(fleet.started[0]).toHaveLength(1);
    expect(Math.max(...fleet.started.map((ids) => ids.length))).toBe(8);
    const sums = fleet.started.map((_, at) => fleet.started.slice(0, at + 1).flat().length);
    // Each stage ends at its share.
    for (const end of [1, 10, 50, 100]) expect(sums).toContain(end);
    expect(fleet.now).toBeGreaterThanOrEqual(4 * rate.soakMs);
  });

  test("halts if the first machine fails, until an operator resumes it or another release comes", () => {
    const bad = new Set<string>();
    const fleet = fleetOf(30, (id) => (bad.has(id) || bad.has("all") ? failing : undefined));
    bad.add("all");
    fleet.run();
    expect(fleet.rollout.status).toMatchObject({ state: "Halted", stage: 0 });
    expect(fleet.rollout.status.reason).toMatch(/^1 of 1 machines failed, such as m-\d+: It ended with 1\.$/);
    expect(fleet.started.flat()).toHaveLength(1);
    fleet.run();
    expect(fleet.started.flat()).toHaveLength(1);
    // Without a change it halts again.
    fleet.rollout = withEvent(fleet.rollout, "resumeRequested", fleet.now) as AgentRollout;
    fleet.run();
    expect(fleet.rollout.status.state).toBe("Halted");
    bad.clear();
    fleet.rollout = withRelease(fleet.rollout, { ...release, digest: "newer", release: "2.0.1" }, fleet.now);
    fleet.run();
    expect(fleet.rollout.status.state).toBe("Completed");
    expect(new Set(fleet.digests.values())).toEqual(new Set(["newer"]));
    expect(fleet.rollout.spec.replaced).toEqual(["new"]);
  });

  test("retries busy machines a few times, and tolerates failures up to the limit", () => {
    const busy = { task: { status: "failed", reason: "busy", retryable: true, isMachineFault: false } } as const;
    const fleet = fleetOf(200, (id) => (id === "m-3" ? busy : undefined));
    fleet.run(2_000);
    expect(fleet.started.flat().filter((id) => id === "m-3")).toHaveLength(3);
    expect(fleet.rollout.status.state).toBe("Completed");
    expect(fleet.states().filter((state) => state === "failed")).toHaveLength(1);
  });

  test("continues without machines that have no space for another agent, even the first", () => {
    const full = { task: { status: "failed", reason: "No memory.", retryable: true, isMachineFault: true } } as const;
    const first = fleetOf(20);
    first.step();
    const tight = new Set([...(first.started[0] ?? []), "m-3", "m-4"]);
    const fleet = fleetOf(20, (id) => (tight.has(id) ? full : undefined));
    fleet.run(2_000);
    expect(fleet.rollout.status.state).toBe("Completed");
    expect(fleet.events).not.toContain("failuresExceeded");
    expect(fleet.states().filter((state) => state === "failed")).toHaveLength(tight.size);
    expect(fleet.states().filter((state) => state === "current")).toHaveLength(20 - tight.size);
    // Another machine is the single machine of the first stage.
    const alone = fleet.started.filter((ids) => ids.some((id) => !tight.has(id)))[0];
    expect(alone).toHaveLength(1);
  });

  test("upgrades the warm pool first, and no machine that is unhealthy or unable", () => {
    const fleet = fleetOf(10, (id) => {
      if (id === "m-7") return { isWaiting: true };
      if (id === "m-1") return { healthy: false };
      if (id === "m-2") return { canHandOver: false };
      return id === "m-3" ? { online: false } : undefined;
    });
    fleet.run();
    expect(fleet.started[0]).toEqual(["m-7"]);
    const all = fleet.started.flat();
    for (const id of ["m-1", "m-2", "m-3"]) expect(all).not.toContain(id);
    expect(fleet.rollout.status.state).toBe("Completed");
    expect(fleet.states().slice(1, 4)).toEqual(["behind", "needs_start", "unreachable"]);
  });

  test("continues when a machine with an older release returns", () => {
    const away = new Set(["m-4"]);
    const fleet = fleetOf(5, (id) => (away.has(id) ? { online: false } : undefined));
    fleet.run();
    expect(fleet.rollout.status.state).toBe("Completed");
    away.clear();
    fleet.step();
    expect(fleet.events.at(-1)).toBe("machinesBehind");
    fleet.run();
    expect(fleet.digests.get("m-4")).toBe("new");
  });

  test("halts when machines stay disconnected after the upgrade, not when they return", () => {
    const cut = new Set<string>();
    const fleet = fleetOf(20, (id) => (cut.has(id) && fleet_.get(id) === "new" ? { online: false } : undefined));
    const fleet_ = fleet.digests;
    for (const id of fleet_.keys()) cut.add(id);
    fleet.run();
    expect(fleet.rollout.status).toMatchObject({ state: "Halted", stage: 0 });
    expect(fleet.rollout.status.reason).toMatch(/^1 of 1 machines are unreachable after their upgrade, such as m-\d+$/);
    expect(fleet.started.flat()).toHaveLength(1);
    cut.clear();
    fleet.rollout = withEvent(fleet.rollout, "resumeRequested", fleet.now) as AgentRollout;
    fleet.run();
    expect(fleet.rollout.status.state).toBe("Completed");
  });

  test("does not complete while no machine is connected, or when an attempt fails late", () => {
    let away = true;
    const late: { task?: AgentFacts["task"] } = {};
    const fleet = fleetOf(1, () => ({ online: !away, ...late }));
    for (let look = 0; look < 50; look += 1) fleet.step();
    expect(fleet.rollout.status.state).toBe("Rolling");
    away = false;
    fleet.rollout = { ...fleet.rollout, status: { ...fleet.rollout.status, state: "Completed" } };
    late.task = failing.task;
    fleet.step();
    fleet.run();
    expect(fleet.rollout.status.state).toBe("Halted");
  });

  test("halts for unhealthy engines after the upgrade, and ignores these after a resume", () => {
    const fleet = fleetOf(20, (id) => (fleet_.get(id) === "new" ? { healthy: false } : undefined));
    const fleet_ = fleet.digests;
    fleet.run();
    expect(fleet.rollout.status).toMatchObject({ state: "Halted" });
    expect(fleet.started.flat()).toHaveLength(1);
    fleet.rollout = withEvent(fleet.rollout, "resumeRequested", fleet.now) as AgentRollout;
    fleet.run();
    expect(fleet.started.flat()).toHaveLength(2);
    expect(fleet.rollout.status).toMatchObject({ state: "Halted", stage: 1 });
  });

  test("counts a machine that rolled back to the previous agent as failed", () => {
    const fleet = fleetOf(3, () => ({ digest: "old" }));
    fleet.run(5_000);
    expect(fleet.rollout.status.reason).toContain("the previous agent runs again");
    expect(fleet.started.flat()).toHaveLength(3);
  });

  test("starts nothing while it is paused, also for another release", () => {
    const fleet = fleetOf(5);
    fleet.rollout = withEvent(fleet.rollout, "pauseRequested", 0) as AgentRollout;
    fleet.rollout = withRelease(fleet.rollout, { ...release, digest: "newer" }, 0);
    for (let look = 0; look < 20; look += 1) fleet.step();
    expect(fleet.started).toEqual([]);
    fleet.rollout = withEvent(fleet.rollout, "resumeRequested", 0) as AgentRollout;
    fleet.run();
    expect(new Set(fleet.digests.values())).toEqual(new Set(["newer"]));
  });
});

test.each([
  ["1.0.1", "1.0.0", true],
  ["1.0.0", "1.0.0", false],
  ["1.9.0", "1.10.0", false],
  ["2.0.0", "1.10.0", true],
  ["2.0", "2.0.1", false],
  ["", "0.1.0", false],
])("release %s is later than %s: %s", (one, other, later) => {
  expect(isLater(one, other)).toBe(later);
});
