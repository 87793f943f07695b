import { describe, expect, test } from "vitest";
import type { NodeReport } from "./delivery-plan.ts";
import type { HostedApp } from "./hosted-app.ts";
import type { HostingStatus } from "./hosting.ts";
import { type HostingFacts, planHosting } from "./hosting-plan.ts";
import type { ObservedNode } from "./observed-node.ts";
import { silentDrainGraceMs } from "./node-endings.ts";

const now = 1_000_000;

function app(
  status: Partial<HostingStatus> = {},
  deploymentId = "new",
  replicas = 1,
  power: Pick<HostedApp["spec"]["hosting"], "power"> = {},
): HostedApp {
  return {
    metadata: { id: "a", name: "shop", organizationId: "o", generation: 1, createdAt: 0, updatedAt: 0 },
    spec: {
      homeUrl: null,
      attachments: [],
      domains: [],
      hosting: {
        zone: "local",
        planName: "tier-1",
        storageSizeGb: 10,
        storageTier: "standard",
        replicas,
        deploymentId,
        deploymentNumber: 1,
        ...power,
      },
    },
    status: {
      hosting: {
        state: "Deploying",
        since: 0,
        operationId: "op",
        nodeIds: ["n1"],
        readyIds: [],
        isPublished: true,
        servingId: null,
        failedId: null,
        delivery: null,
        error: null,
        unhealthySince: null,
        ...status,
      },
    },
  };
}

function node(id: string, change: Partial<ObservedNode> = {}): ObservedNode {
  const running = { hasSession: true, isDown: false, isHealthy: true, isStopped: false };
  return { id, presence: "present", ...running, report: undefined, ...change };
}

function report(generation: number, servingReleaseId: string, states: Record<string, string>): NodeReport {
  const releases = Object.entries(states).map(([id, state]) => ({
    $typeName: "holdfast.agent.v1.ReleaseObservation" as const,
    id,
    state,
    reason: state === "failed" ? "It ended." : "",
    lastLines: [],
  }));
  return { generation, app: { servingReleaseId, releases } };
}

const facts = (change: Partial<HostingFacts>): HostingFacts => ({
  now,
  drainMs: 30_000,
  isReachable: false,
  endpoints: [],
  newIds: ["new-1", "new-2", "new-3"],
  nodes: [node("n1")],
  desired: { hasDigest: true },
  failure: undefined,
  ...change,
});

const first = { generation: 1, releaseIds: ["new"], servingReleaseId: "new" };
const beside = { generation: 2, releaseIds: ["old", "new"], servingReleaseId: "old" };
const switched = { generation: 3, releaseIds: ["new"], servingReleaseId: "new" };
const serving = { generation: 1, releaseIds: ["old"], servingReleaseId: "old" };

describe("a new app", () => {
  test("gets its machines, then waits for their agents", () => {
    const created = planHosting(app({ state: "Pending", nodeIds: [] }, "new", 2), facts({ nodes: [] }));
    expect(created).toMatchObject({ created: ["new-1", "new-2"], event: "machinesCreated" });
    expect(created.status).toMatchObject({ state: "Provisioning", nodeIds: ["new-1", "new-2"], since: now });
    const waiting = planHosting(app({ state: "Provisioning" }), facts({ nodes: [node("n1", { hasSession: false })] }));
    expect(waiting.event).toBeUndefined();
    expect(planHosting(app({ state: "Provisioning" }), facts({})).status.state).toBe("Deploying");
  });

  test("is delivered nothing before the digest of its image is known", () => {
    const plan = planHosting(app(), facts({ desired: { hasDigest: false } }));
    expect(plan.status.delivery).toBeNull();
    expect(planHosting(app(), facts({})).status.delivery).toEqual(first);
  });

  test("is Running once all of its machines serve", () => {
    const both = app({ delivery: first, nodeIds: ["n1", "n2"] }, "new", 2);
    const [ready, starting] = [report(1, "new", { new: "ready" }), report(1, "", { new: "starting" })];
    const one = planHosting(both, facts({ nodes: [node("n1", { report: ready }), node("n2", { report: starting })] }));
    expect(one).toMatchObject({ result: undefined, event: undefined });
    const all = planHosting(both, facts({ nodes: [node("n1", { report: ready }), node("n2", { report: ready })] }));
    expect(all).toMatchObject({ result: { kind: "serves" }, event: "deployed", effect: "announceDeployed" });
    expect(all.status).toMatchObject({ state: "Running", servingId: "new", failedId: null });
  });

  test("is in Error when its first release fails, or its image is never found", () => {
    const failed = planHosting(
      app({ delivery: first }),
      facts({ nodes: [node("n1", { isHealthy: false, report: report(1, "", { new: "failed" }) })] }),
    );
    expect(failed.status).toMatchObject({ state: "Error", error: "It ended.", failedId: "new", delivery: first });
    const missing = planHosting(
      app({ state: "Provisioning" }),
      facts({ desired: { hasDigest: false }, failure: "There is no such image." }),
    );
    expect(missing.status).toMatchObject({ state: "Error", error: "There is no such image.", delivery: null });
    const later = planHosting(
      app({ state: "Error", error: "There is no such image." }),
      facts({ desired: { failure: "There is no such image.", hasDigest: false } }),
    );
    expect(later.status).toMatchObject({ state: "Error", error: "There is no such image.", delivery: null });
  });

  test.each(["Provisioning", "Deploying"] as const)(
    "is in Error in the round after %s if its deployment failed in a round of another event",
    (state) => {
      const desired = { failure: "There is no such image.", hasDigest: false };
      const pending = planHosting(
        app({ state: "Pending", nodeIds: [] }),
        facts({ nodes: [], desired: { hasDigest: false }, failure: "There is no such image." }),
      );
      expect(pending).toMatchObject({ event: "machinesCreated", result: { kind: "failed" } });
      const after = planHosting(app({ state, failedId: "new" }), facts({ desired }));
      expect(after).toMatchObject({ event: "deploymentFailed", effect: "announceFailed", result: undefined });
      expect(after.status).toMatchObject({ state: "Error", error: "There is no such image." });
    },
  );
});

describe("a deployment of an app that serves", () => {
  const running = { state: "Running", servingId: "old" } as const;

  test("starts beside the serving release, and replaces it once it is ready", () => {
    expect(planHosting(app({ ...running, delivery: serving }), facts({})).status.delivery).toEqual(beside);
    const ready = node("n1", { report: report(2, "old", { old: "ready", new: "ready" }) });
    expect(planHosting(app({ ...running, delivery: beside }), facts({ nodes: [ready] })).status.delivery).toEqual(
      switched,
    );
    const done = node("n1", { report: report(3, "new", { new: "ready" }) });
    const plan = planHosting(app({ ...running, delivery: switched }), facts({ nodes: [done] }));
    expect(plan).toMatchObject({ result: { kind: "serves" }, event: undefined });
    expect(plan.status).toMatchObject({ state: "Running", servingId: "new" });
  });

  test("leaves the state and what serves when it fails", () => {
    const failed = node("n1", { report: report(2, "old", { old: "ready", new: "failed" }) });
    const plan = planHosting(app({ ...running, delivery: beside }), facts({ nodes: [failed] }));
    expect(plan).toMatchObject({ result: { kind: "failed", reason: "It ended." }, effect: "none" });
    expect(plan.status).toMatchObject({ state: "Running", servingId: "old", failedId: "new", error: null });
    expect(plan.status.delivery).toEqual({ generation: 3, releaseIds: ["old"], servingReleaseId: "old" });
    const missing = facts({ desired: { hasDigest: false }, failure: "There is no such image." });
    expect(planHosting(app({ ...running, delivery: serving }), missing).status).toMatchObject({
      state: "Running",
      delivery: serving,
    });
  });

  test("is the desired one no more once it fails, so that later changes start from what serves", () => {
    const reported = node("n1", { report: report(2, "old", { old: "ready", new: "failed" }) });
    const rounds = [
      planHosting(app({ ...running, delivery: beside }), facts({ nodes: [reported] })),
      planHosting(app({ ...running, delivery: serving }), facts({ failure: "There is no such image." })),
      // An earlier release has left a failed one.
      planHosting(
        app({ ...running, failedId: "new", delivery: serving, operationId: null }),
        facts({ desired: { failure: "It ended.", hasDigest: true } }),
      ),
    ];
    expect(rounds.map(({ deploymentId }) => deploymentId)).toEqual(["old", "old", "old"]);
    const going = planHosting(app({ ...running, delivery: serving }), facts({}));
    expect(going.deploymentId).toBe("new");
    const first = planHosting(app({ state: "Provisioning" }), facts({ failure: "There is no such image." }));
    expect(first).toMatchObject({ deploymentId: "new", result: { kind: "failed" } });
  });

  test("is not given up after the switch, for which all machines were ready", () => {
    const plan = planHosting(
      app({ ...running, delivery: switched }),
      facts({ nodes: [node("n1", { hasSession: false, report: undefined })], failure: "No progress." }),
    );
    expect(plan).toMatchObject({ result: undefined, status: { delivery: switched } });
  });
});

describe("the machines of an app that serves", () => {
  const serves = report(1, "old", { old: "ready" });
  const running = app({ state: "Running", servingId: "old", delivery: serving, operationId: null }, "old");

  test("a lost one is replaced", () => {
    const plan = planHosting(running, facts({ nodes: [node("n1", { presence: "absent" })] }));
    expect(plan).toMatchObject({ created: ["new-1"], deleted: [], status: { nodeIds: ["new-1"] } });
  });

  test("one on a host that is drained ends once another serves", () => {
    const leaving = node("n1", { presence: "leaving", report: serves });
    const added = planHosting(running, facts({ nodes: [leaving] }));
    expect(added).toMatchObject({ created: ["new-1"], deleted: [], status: { nodeIds: ["n1", "new-1"] } });
    const starting = planHosting(running, facts({ nodes: [leaving, node("n2")] }));
    expect(starting).toMatchObject({ created: [], deleted: [] });
    const other = node("n2", { report: serves });
    const down = planHosting(running, facts({ nodes: [{ ...leaving, hasSession: false, isDown: true }, other] }));
    expect(down).toMatchObject({ created: [], deleted: ["n1"], status: { nodeIds: ["n2"] } });
  });

  test("a superfluous one loses its route, then ends its requests, then is deleted", () => {
    const both = [node("n1", { report: serves }), node("n2", { report: serves })];
    const scaled = app({ ...running.status.hosting, nodeIds: ["n1", "n2"], readyIds: ["n1", "n2"] }, "old", 1);
    const withoutRoute = planHosting(scaled, facts({ nodes: both }));
    expect(withoutRoute).toMatchObject({ deleted: [], status: { readyIds: ["n1"], delivery: serving } });
    const draining = planHosting(app({ ...withoutRoute.status }, "old", 1), facts({ nodes: both }));
    const delivery = { ...serving, generation: 2, drainedIds: ["n2"] };
    expect(draining).toMatchObject({ deleted: [], status: { nodeIds: ["n1", "n2"], delivery } });
    const stored = app({ ...draining.status }, "old", 1);
    const serves2 = { ...serves, generation: 2 };
    const busy = facts({ nodes: [node("n1", { report: serves2 }), node("n2", { report: serves2 })] });
    expect(planHosting(stored, busy)).toMatchObject({ deleted: [], status: { delivery } });
    const idle = node("n2", { isStopped: true, isHealthy: false, report: serves2 });
    const ended = planHosting(stored, facts({ nodes: [node("n1", { report: serves2 }), idle] }));
    expect(ended).toMatchObject({ deleted: ["n2"], status: { nodeIds: ["n1"], readyIds: ["n1"] } });
    expect(ended.status.delivery).toMatchObject({ generation: 3 });
    expect(ended.status.delivery).not.toHaveProperty("drainedIds");
  });

  test.each([
    ["has no session", { hasSession: false, report: serves }],
    ["has no session, and no report since a controller has started", { hasSession: false }],
    ["has an agent that has just started, and reports no release yet", { report: report(1, "", {}) }],
  ])("a superfluous one that %s is deleted only after the time of its requests", (_, change) => {
    const nodes = [node("n1", { report: serves }), node("n2", change)];
    const scaled = app({ ...running.status.hosting, nodeIds: ["n1", "n2"], readyIds: ["n1", "n2"] }, "old", 1);
    const withoutRoute = planHosting(scaled, facts({ nodes }));
    expect(withoutRoute).toMatchObject({
      deleted: [],
      status: { readyIds: ["n1"], servedIds: ["n1", "n2"], endings: [{ id: "n2", since: now }] },
    });
    const stored = app({ ...withoutRoute.status }, "old", 1);
    const drainedMs = 30_000 + silentDrainGraceMs;
    const early = planHosting(stored, facts({ nodes, now: now + drainedMs - 1 }));
    expect(early).toMatchObject({ deleted: [], status: { endings: [{ id: "n2", since: now }] } });
    const silent = [nodes[0] as ObservedNode, node("n2", { ...change, hasSession: false })];
    const late = planHosting(stored, facts({ nodes: silent, now: now + drainedMs }));
    expect(late).toMatchObject({ deleted: ["n2"], status: { nodeIds: ["n1"], servedIds: ["n1"] } });
    const after = planHosting(app({ ...late.status }, "old", 1), facts({ nodes: [node("n1", { report: serves })] }));
    expect(after.status).not.toHaveProperty("endings");
  });

  test("a superfluous one that never served, that is down, or that has stopped is deleted in the next round", () => {
    const before = { ...running.status.hosting, nodeIds: ["n1", "n2"], readyIds: ["n1"], servedIds: ["n1"] };
    const other = node("n1", { report: serves });
    const deletedWith = (status: Partial<HostingStatus>, change: Partial<ObservedNode>) =>
      planHosting(app({ ...before, ...status }, "old", 1), facts({ nodes: [other, node("n2", change)] })).deleted;
    expect(deletedWith({}, { hasSession: false })).toEqual(["n2"]);
    expect(deletedWith({ servedIds: ["n1", "n2"] }, { hasSession: false, isDown: true })).toEqual(["n2"]);
    const delivery = { ...serving, generation: 2, drainedIds: ["n2"] };
    const stopped = { hasSession: false, isStopped: true, report: { ...serves, generation: 2 } };
    expect(deletedWith({ servedIds: ["n1", "n2"], delivery }, stopped)).toEqual(["n2"]);
    // A status of an earlier release does not name the machines that have served.
    const { servedIds: _, ...earlier } = before;
    const plan = planHosting(app(earlier, "old", 1), facts({ nodes: [other, node("n2", { hasSession: false })] }));
    expect(plan).toMatchObject({ deleted: [], status: { servedIds: ["n1", "n2"] } });
  });

  test("of those that are superfluous, one without a session ends first", () => {
    const scaled = app({ ...running.status.hosting, nodeIds: ["n1", "n2"], readyIds: ["n1", "n2"] }, "old", 1);
    const nodes = (first: boolean, second: boolean) => [
      node("n1", { report: serves, hasSession: first }),
      node("n2", { report: serves, hasSession: second }),
    ];
    const endingOf = (each: readonly ObservedNode[]) => planHosting(scaled, facts({ nodes: each })).status.endings;
    expect(endingOf(nodes(false, true))).toEqual([{ id: "n1", since: now }]);
    expect(endingOf(nodes(true, false))).toEqual([{ id: "n2", since: now }]);
    // No other one certainly serves.
    expect(endingOf(nodes(false, false))).toBeUndefined();
    const { status } = planHosting(scaled, facts({ nodes: nodes(true, true) }));
    const continued = planHosting(app({ ...status }, "old", 1), facts({ nodes: nodes(false, false), now: now + 1 }));
    expect(continued.status).toMatchObject({ readyIds: ["n1"], endings: [{ id: "n2", since: now }] });
  });

  test("one whose agent has not read its releases yet keeps its route", () => {
    const status = { ...running.status.hosting, readyIds: ["n1"] };
    const nodes = [node("n1", { report: { generation: 1, app: undefined } })];
    expect(planHosting(app(status, "old"), facts({ nodes })).status.readyIds).toEqual(["n1"]);
  });

  test("without a healthy one for a minute the app is in Error, and Running with one again", () => {
    const reason = "The program ended with the exit code 9 and is started again.";
    const lost = facts({ nodes: [node("n1", { isHealthy: false, report: serves, reason })] });
    const early = planHosting(running, lost);
    expect(early.status).toMatchObject({ state: "Running", unhealthySince: now });
    const late = { ...running, status: { hosting: { ...early.status, unhealthySince: now - 60_000 } } };
    const error = planHosting(late, lost);
    const expected = `No machine of the app is healthy. ${reason}`;
    expect(error).toMatchObject({ effect: "announceFailed", status: { state: "Error", error: expected } });
    const again = planHosting({ ...running, status: { hosting: error.status } }, facts({ nodes: [node("n1")] }));
    expect(again.status).toMatchObject({ state: "Running", error: null, unhealthySince: null });
    expect(again.status).not.toHaveProperty("unhealthyReason");
  });
});

describe("an app in Error", () => {
  const done = node("n1", { report: report(3, "new", { new: "ready" }) });
  const deploying = app({ servingId: "old", delivery: switched, readyIds: ["n1"], isPublished: false });

  test("is not published, so that its next deployment ends once the ingresses pass requests to it", () => {
    const ill = app({ state: "Error", servingId: "old", delivery: serving, readyIds: ["n1"] }, "old");
    expect(planHosting(ill, facts({ nodes: [node("n1", { isHealthy: false })] })).status.isPublished).toBe(false);
    expect(planHosting(deploying, facts({ nodes: [done] }))).toMatchObject({
      result: undefined,
      status: { state: "Deploying" },
    });
    const reached = planHosting(deploying, facts({ nodes: [done], isReachable: true }));
    expect(reached).toMatchObject({ result: { kind: "serves" }, status: { state: "Running", isPublished: true } });
  });

  test("ends its deployment in time without the ingresses", () => {
    const plan = planHosting(deploying, facts({ nodes: [done], failure: "No progress." }));
    expect(plan).toMatchObject({ result: { kind: "serves" }, status: { state: "Running", servingId: "new" } });
  });
});

describe("an app that is stopped", () => {
  const off = app({ state: "Running", servingId: "new", readyIds: ["n1"], delivery: first }, "new", 1, {
    power: "off",
  });

  test("loses its routes and is delivered as stopped, then is Stopped once its machines report it", () => {
    const { status, event } = planHosting(off, facts({ nodes: [node("n1", { report: report(1, "new", {}) })] }));
    expect(status).toMatchObject({ readyIds: [], delivery: { generation: 2, isStopped: true }, unhealthySince: null });
    expect(event).toBeUndefined();
    const stopping = app({ ...status }, "new", 1, { power: "off" });
    const stopped = node("n1", { isHealthy: false, isStopped: true, report: report(2, "new", {}) });
    expect(planHosting(stopping, facts({ nodes: [stopped] }))).toMatchObject({
      event: "stopped",
      status: { state: "Stopped", delivery: { generation: 2 }, isPublished: false },
    });
  });

  test("is Running again once all machines serve after its start, and the ingresses pass requests to them", () => {
    const stopped = { ...first, generation: 2, isStopped: true as const };
    const starting = app({
      state: "Provisioning",
      servingId: "new",
      readyIds: [],
      delivery: stopped,
      isPublished: false,
    });
    const idle = node("n1", { isHealthy: false, isStopped: true, report: report(2, "new", {}) });
    const deploying = planHosting(starting, facts({ nodes: [idle] }));
    expect(deploying.status).toMatchObject({ state: "Deploying", delivery: { generation: 3 } });
    const waiting = planHosting(app({ ...deploying.status }), facts({ nodes: [idle] }));
    expect([waiting.event, waiting.status.readyIds]).toEqual([undefined, []]);
    const serving = node("n1", { report: report(3, "new", { new: "ready" }) });
    const routed = planHosting(app({ ...deploying.status }), facts({ nodes: [serving] }));
    expect(routed).toMatchObject({ event: undefined, status: { state: "Deploying", readyIds: ["n1"] } });
    expect(planHosting(app({ ...routed.status }), facts({ nodes: [serving], isReachable: true }))).toMatchObject({
      event: "deployed",
      status: { state: "Running", readyIds: ["n1"] },
    });
  });
});
