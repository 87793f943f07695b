import fc from "fast-check";
import { create } from "@bufbuild/protobuf";
import { AppObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { describe, expect, test } from "vitest";
import { type Delivery, type NodeReport, planDelivery, type StoredReleases } from "./delivery-plan.ts";

type States = Readonly<Record<string, string>>;

function report(generation: number, servingReleaseId: string, states: States): NodeReport {
  const releases = Object.entries(states).map(([id, state]) => ({
    id,
    state,
    reason: state === "failed" ? "The program ended." : "",
    lastLines: state === "failed" ? ["bye"] : [],
  }));
  return { generation, app: create(AppObservationSchema, { servingReleaseId, releases }) };
}

const alone = (generation: number, id: string): Delivery => ({ generation, releaseIds: [id], servingReleaseId: id });
const beside = (generation: number): Delivery => ({ generation, releaseIds: ["a", "b"], servingReleaseId: "a" });
const first: StoredReleases = { desired: "a", serving: undefined, hasFailed: false, delivery: undefined };
const second: StoredReleases = { desired: "b", serving: "a", hasFailed: false, delivery: alone(1, "a") };
const failure = { kind: "failed", reason: "The program ended.", lastLines: ["bye"] };

describe("a delivery to the nodes of an app", () => {
  test.each<[string, StoredReleases, (NodeReport | undefined)[], object]>([
    ["begins with the only release", first, [], { delivery: alone(1, "a") }],
    [
      "waits for all nodes",
      { ...first, delivery: alone(1, "a") },
      [report(1, "a", { a: "ready" }), undefined],
      { delivery: alone(1, "a") },
    ],
    [
      "ends when all nodes serve",
      { ...first, delivery: alone(1, "a") },
      [report(1, "a", { a: "ready" }), report(1, "a", { a: "ready" })],
      { delivery: alone(1, "a"), result: { kind: "serves" } },
    ],
    [
      "fails with the reason of a first release",
      { ...first, delivery: alone(1, "a") },
      [report(1, "", { a: "failed" })],
      { delivery: alone(1, "a"), result: failure },
    ],
    [
      "adds the next release beside the one that serves",
      second,
      [report(1, "a", { a: "ready" })],
      { delivery: beside(2) },
    ],
    [
      "is not switched by a report of an earlier generation",
      { ...second, delivery: beside(2) },
      [report(1, "a", { a: "ready", b: "ready" })],
      { delivery: beside(2) },
    ],
    [
      "is not switched while the release starts on one node",
      { ...second, delivery: beside(2) },
      [report(2, "a", { a: "ready", b: "ready" }), report(2, "a", { a: "ready", b: "starting" })],
      { delivery: beside(2) },
    ],
    [
      "is switched when the release is ready on all nodes",
      { ...second, delivery: beside(2) },
      [report(2, "a", { a: "ready", b: "ready" }), report(2, "a", { a: "ready", b: "ready" })],
      { delivery: alone(3, "b") },
    ],
    [
      "ends when all nodes have switched",
      { ...second, delivery: alone(3, "b") },
      [report(3, "b", { a: "draining", b: "ready" })],
      { delivery: alone(3, "b"), result: { kind: "serves" } },
    ],
    [
      "removes a release that failed on one node",
      { ...second, delivery: beside(2) },
      [report(2, "a", { a: "ready", b: "ready" }), report(2, "a", { a: "ready", b: "failed" })],
      { delivery: alone(3, "a"), result: failure },
    ],
    [
      "does not return to a release that failed",
      { ...second, hasFailed: true, delivery: alone(3, "a") },
      [report(3, "a", { a: "ready" })],
      { delivery: alone(3, "a") },
    ],
    [
      "is not failed by a node that reports late after the switch",
      { ...second, delivery: alone(3, "b") },
      [report(3, "b", { b: "ready" }), report(3, "", { b: "failed" })],
      { delivery: alone(3, "b") },
    ],
    [
      "is replaced after the switch by one beside the release that was switched to",
      { ...second, desired: "c", delivery: alone(3, "b") },
      [report(3, "b", { a: "draining", b: "ready" })],
      { delivery: { generation: 4, releaseIds: ["b", "c"], servingReleaseId: "b" } },
    ],
    [
      "goes back after the switch by the same steps",
      { ...second, desired: "a", delivery: alone(3, "b") },
      [report(3, "b", { a: "draining", b: "ready" })],
      { delivery: { generation: 4, releaseIds: ["b", "a"], servingReleaseId: "b" } },
    ],
    [
      "is replaced by one with a newer release before the switch",
      { ...second, desired: "c", delivery: beside(2) },
      [report(2, "a", { a: "ready", b: "ready" })],
      { delivery: { generation: 3, releaseIds: ["a", "c"], servingReleaseId: "a" } },
    ],
  ])("%s", (_, stored, reports, expected) => {
    expect(planDelivery(stored, reports)).toEqual(expected);
  });

  test("never switches to a release that is not ready on all nodes, and never back to one that failed", () => {
    const state = fc.constantFrom("pulling", "starting", "ready", "failed");
    const round = fc.record({ states: fc.array(state, { minLength: 3, maxLength: 3 }), reporting: fc.nat(7) });
    fc.assert(
      fc.property(fc.array(round, { maxLength: 12 }), (rounds) => {
        let stored: StoredReleases = { ...second };
        /** True for a release that all nodes reported as ready in the current generation. */
        let wasReady = false;
        for (const { states, reporting } of rounds) {
          const { delivery = alone(1, "a"), serving } = stored;
          // A ready release that was switched to does not fail any more.
          const reported = delivery.servingReleaseId === "b" ? states.map(() => "ready") : states;
          const reports = reported.map((each, node) =>
            (reporting >> node) % 2 === 0
              ? undefined
              : report(delivery.generation, delivery.servingReleaseId, {
                  ...(serving === "a" && { a: "ready" }),
                  ...(delivery.releaseIds.includes("b") && { b: each }),
                }),
          );
          wasReady = delivery.releaseIds.includes("b") && reporting === 7 && reported.every((each) => each === "ready");
          const plan = planDelivery(stored, reports);
          if (delivery.servingReleaseId === "a" && plan.delivery.servingReleaseId === "b") expect(wasReady).toBe(true);
          expect(plan.delivery.generation - delivery.generation).toBeLessThanOrEqual(1);
          expect(plan.delivery.releaseIds).toContain(plan.delivery.servingReleaseId);
          stored = {
            ...stored,
            delivery: plan.delivery,
            ...(plan.result?.kind === "serves" && { serving: "b" }),
            ...(plan.result?.kind === "failed" && { hasFailed: true }),
          };
          if (plan.result?.kind === "failed") expect(plan.delivery).toMatchObject({ releaseIds: ["a"] });
        }
        const last = stored.delivery?.servingReleaseId;
        expect(stored.hasFailed ? last : "a").toBe("a");
      }),
    );
  });
});
