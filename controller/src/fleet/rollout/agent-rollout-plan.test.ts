import { describe, expect, test } from "vitest";
import { type AgentRollout, isLater, newRollout, withEvent, withRelease } from "./agent-rollout.ts";
import { upgradeTaskId } from "./agent-facts.ts";
import { type AgentFacts, planAgentRollout, type RolloutPace, stateOf } from "./agent-rollout-plan.ts";

const release = { release: "2.0.0", digest: "new", payloadId: "p", sha256: "s", sizeBytes: 1 };
const pace: RolloutPace = { shares: [10, 50, 100], soakMs: 1_000, failurePct: 2, atOnce: 8 };

/** A fleet that does what it is told, but for those named. */
function fleetOf(count: number, change: (id: string) => Partial<AgentFacts> | undefined = () => undefined) {
  let rollout: AgentRollout = newRollout(release, 0);
  let now = 0;
  const digests = new Map(Array.from({ length: count }, (_, n) => [`m-${n}`, "old"]));
  const tasks = new Map<string, AgentFacts["task"]>();
  const events: string[] = [];
  const begun: string[][] = [];

  const factsOf = (machineId: string): AgentFacts => ({
    machineId,
    isWaiting: false,
    online: true,
    digest: digests.get(machineId) ?? "",
    able: true,
    healthy: true,
    ...change(machineId),
    task: tasks.get(upgradeTaskId(rollout, machineId)),
  });
  const facts = () => [...digests.keys()].map(factsOf);

  /** One look; what it began is done at the next. */
  function step(): void {
    const plan = planAgentRollout(rollout, facts(), pace, now);
    rollout = { ...rollout, status: plan.status };
    if (plan.event !== undefined) {
      events.push(plan.event);
      rollout = withEvent(rollout, plan.event, now, plan.reason) ?? rollout;
    }
    if (plan.begin.length > 0) begun.push([...plan.begin]);
    for (const id of plan.begin) {
      const outcome = change(id)?.task ?? { status: "completed" as const };
      tasks.set(upgradeTaskId(rollout, id), outcome);
      if (outcome.status === "completed" && change(id)?.digest === undefined) digests.set(id, rollout.spec.digest);
    }
    now = Math.max(now + 1, plan.lookAt ?? now + 100);
  }

  function run(looks = 500): void {
    for (let look = 0; look < looks && rollout.status.state === "Rolling"; look += 1) step();
  }

  return {
    run,
    step,
    events,
    begun,
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
  task: { status: "failed", reason: "It ended with 1.", retryable: false, isMachines: false },
} as const;

describe("a rollout", () => {
  test("goes from one machine by shares to all, never more at once than it may, each stage watched", () => {
    const fleet = fleetOf(100);
    fleet.run();
    expect(fleet.rollout.status.state).toBe("Completed");
    expect([...fleet.digests.values()].every((digest) => digest === "new")).toBe(true);
    expect(fleet.begun[0]).toHaveLength(1);
    expect(Math.max(...fleet.begun.map((ids) => ids.length))).toBe(8);
    const sums = fleet.begun.map((_, at) => fleet.begun.slice(0, at + 1).flat().length);
    // Each stage ends where its share does.
    for (const end of [1, 10, 50, 100]) expect(sums).toContain(end);
    expect(fleet.now).toBeGreaterThanOrEqual(4 * pace.soakMs);
  });

  test("halts at the first machine that fails, and goes on when an operator or another release says so", () => {
    const bad = new Set<string>();
    const fleet = fleetOf(30, (id) => (bad.has(id) || bad.has("all") ? failing : undefined));
    bad.add("all");
    fleet.run();
    expect(fleet.rollout.status).toMatchObject({ state: "Halted", stage: 0 });
    expect(fleet.rollout.status.reason).toMatch(/^1 of 1 machines failed, such as m-\d+: It ended with 1\.$/);
    expect(fleet.begun.flat()).toHaveLength(1);
    fleet.run();
    expect(fleet.begun.flat()).toHaveLength(1);
    // Tried again as it was, it halts again.
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

  test("tries what was only busy a few times, and bears as many failures as it may", () => {
    const busy = { task: { status: "failed", reason: "busy", retryable: true, isMachines: false } } as const;
    const fleet = fleetOf(200, (id) => (id === "m-3" ? busy : undefined));
    fleet.run(2_000);
    expect(fleet.begun.flat().filter((id) => id === "m-3")).toHaveLength(3);
    expect(fleet.rollout.status.state).toBe("Completed");
    expect(fleet.states().filter((state) => state === "failed")).toHaveLength(1);
  });

  test("goes on without machines that have no room for another agent, though the first one is such", () => {
    const full = { task: { status: "failed", reason: "No memory.", retryable: true, isMachines: true } } as const;
    const first = fleetOf(20);
    first.step();
    const tight = new Set([...(first.begun[0] ?? []), "m-3", "m-4"]);
    const fleet = fleetOf(20, (id) => (tight.has(id) ? full : undefined));
    fleet.run(2_000);
    expect(fleet.rollout.status.state).toBe("Completed");
    expect(fleet.events).not.toContain("failuresExceeded");
    expect(fleet.states().filter((state) => state === "failed")).toHaveLength(tight.size);
    expect(fleet.states().filter((state) => state === "current")).toHaveLength(20 - tight.size);
    // Another one is the first that tells of the release.
    const alone = fleet.begun.filter((ids) => ids.some((id) => !tight.has(id)))[0];
    expect(alone).toHaveLength(1);
  });

  test("tries machines of nobody first, and none that is not well, or that cannot", () => {
    const fleet = fleetOf(10, (id) => {
      if (id === "m-7") return { isWaiting: true };
      if (id === "m-1") return { healthy: false };
      if (id === "m-2") return { able: false };
      return id === "m-3" ? { online: false } : undefined;
    });
    fleet.run();
    expect(fleet.begun[0]).toEqual(["m-7"]);
    const all = fleet.begun.flat();
    for (const id of ["m-1", "m-2", "m-3"]) expect(all).not.toContain(id);
    expect(fleet.rollout.status.state).toBe("Completed");
    expect(fleet.states().slice(1, 4)).toEqual(["behind", "needs_start", "unreachable"]);
  });

  test("goes on when a machine comes back behind", () => {
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

  test("halts when machines are not heard any more after the upgrade, and not when they come back", () => {
    const cut = new Set<string>();
    const fleet = fleetOf(20, (id) => (cut.has(id) && fleet_.get(id) === "new" ? { online: false } : undefined));
    const fleet_ = fleet.digests;
    for (const id of fleet_.keys()) cut.add(id);
    fleet.run();
    expect(fleet.rollout.status).toMatchObject({ state: "Halted", stage: 0 });
    expect(fleet.rollout.status.reason).toMatch(/^1 of 1 machines are unreachable after their upgrade, such as m-\d+$/);
    expect(fleet.begun.flat()).toHaveLength(1);
    cut.clear();
    fleet.rollout = withEvent(fleet.rollout, "resumeRequested", fleet.now) as AgentRollout;
    fleet.run();
    expect(fleet.rollout.status.state).toBe("Completed");
  });

  test("is not over while no machine is heard, and not when what was tried before fails late", () => {
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

  test("halts for engines that are not well after the upgrade, and leaves these to the operator then", () => {
    const fleet = fleetOf(20, (id) => (fleet_.get(id) === "new" ? { healthy: false } : undefined));
    const fleet_ = fleet.digests;
    fleet.run();
    expect(fleet.rollout.status).toMatchObject({ state: "Halted" });
    expect(fleet.begun.flat()).toHaveLength(1);
    fleet.rollout = withEvent(fleet.rollout, "resumeRequested", fleet.now) as AgentRollout;
    fleet.run();
    expect(fleet.begun.flat()).toHaveLength(2);
    expect(fleet.rollout.status).toMatchObject({ state: "Halted", stage: 1 });
  });

  test("counts a machine that went back to the agent of before as one that failed", () => {
    const fleet = fleetOf(3, () => ({ digest: "old" }));
    fleet.run(5_000);
    expect(fleet.rollout.status.reason).toContain("the agent of before runs again");
    expect(fleet.begun.flat()).toHaveLength(3);
  });

  test("begins nothing while it is paused, whatever is released", () => {
    const fleet = fleetOf(5);
    fleet.rollout = withEvent(fleet.rollout, "pauseRequested", 0) as AgentRollout;
    fleet.rollout = withRelease(fleet.rollout, { ...release, digest: "newer" }, 0);
    for (let look = 0; look < 20; look += 1) fleet.step();
    expect(fleet.begun).toEqual([]);
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
