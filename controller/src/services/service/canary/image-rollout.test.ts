import { expect, test } from "vitest";
import type { OperationObject } from "#operation/operation.ts";
import {
  observedNode,
  observedService,
  replicaOf,
  type Observation,
} from "@holdfast/testing/controller/observed-service.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { type ManagedServiceObject, serviceSubject } from "../managed-service.ts";
import {
  imageRolloutFault,
  isImageRolledOut,
  retainsNewImage,
  rollBackImages,
  canRollImages,
  withPinnedImages,
} from "./image-rollout.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "../service-operations.ts";
import { nextInRollout, withNextInRollout } from "../member/primary-replicas/rollout.ts";

const [primary] = runningService().spec.nodes;
if (primary === undefined) throw new Error("a service has a node");
const change = { from: "old", to: "new", fromVersion: "17.0", toVersion: "17.1" };
const operation: OperationObject = newOperation({
  id: "op",
  subject: serviceSubject("service-1"),
  organizationId: "org",
  type: serviceOperations.maintenance,
  now: 0,
  work: { updates: ["new"], automatic: false, inRollout: true, image: change },
});
const before = runningService(
  {},
  { nodes: [primary, replicaOf("r2", 2), replicaOf("r3", 3)], nextNodeNumber: 4, instanceGeneration: 5, image: "old" },
);
const started: ManagedServiceObject = {
  ...before,
  spec: { ...before.spec, image: "new", nodes: withPinnedImages(before, change, undefined) },
};

/** Every machine has its desired image, except for the changes. */
function scenario(service: ManagedServiceObject, reported: Readonly<Record<string, Observation>> = {}) {
  const { spec } = service;
  const nodes = spec.nodes.map((node) => {
    const { image } = node.pinned ?? spec;
    const own = {
      state: "running",
      generation: BigInt(spec.instanceGeneration),
      restartCount: 0n,
      engineVersion: image === "new" ? "17.1" : "17.0",
      checks: [],
      rejectedParameters: {},
      replication: { state: "streaming" },
      ...reported[node.id],
    };
    return observedNode(node, own, { machine: runningMachine(node.id, { image }) });
  });
  return observedService(nodes);
}
const pinnedTo = ({ spec }: ManagedServiceObject) => spec.nodes.map(({ pinned }) => pinned?.image);
const next = (service: ManagedServiceObject) => withNextInRollout(service, scenario(service));

test("an image is applied node by node where a replica runs, and to all nodes together elsewhere", () => {
  const status = (replicaStatus: "Running" | "Error") => ({
    nodes: [{ id: "r2", status: replicaStatus, address: "", publicAddress: "" }],
  });
  const nodes = before.spec.nodes.slice(0, 2);
  expect(canRollImages(runningService({}, { nodes }, status("Running")))).toBe(true);
  expect(canRollImages(runningService({}, { nodes }, status("Error")))).toBe(false);
  expect(canRollImages(runningService())).toBe(false);
});

test("the replicas get it one after another, and the primary once it gave way", () => {
  expect(pinnedTo(started)).toEqual(["old", "old", "old"]);
  const one = next(started);
  expect(pinnedTo(one)).toEqual(["old", undefined, "old"]);
  expect(one.spec.instanceGeneration).toBe(7);
  const two = next(one);
  expect(pinnedTo(two)).toEqual(["old", undefined, undefined]);
  expect(nextInRollout(two, scenario(two))).toMatchObject({ kind: "switchOver", to: { id: "r2" } });
  const over = { ...two, status: { ...two.status, primaryNodeId: "r2" } };
  const three = next(over);
  expect(pinnedTo(three)).toEqual([undefined, undefined, undefined]);
  expect(nextInRollout(three, scenario(three))).toBeUndefined();
});

test("it never reaches a primary without a replica that has it", () => {
  const away = scenario(started);
  const nodes = away.nodes.map((seen) => (seen.node.id === primary.id ? seen : { ...seen, connected: false }));
  expect(nextInRollout(started, { ...away, nodes })).toBeUndefined();
});

test.each<[what: string, Observation, code: string | undefined]>([
  ["that runs", {}, undefined],
  ["whose engine does not come up", { state: "failed", reason: "no" }, "engine_failed"],
  ["that has another version", { engineVersion: "17.0" }, "not_healthy"],
  [
    "that changes a collation",
    { checks: [{ name: "collation", status: "degraded", reason: "ICU" }] } as never,
    "text_order",
  ],
])("a replica %s is judged", (_what, reported, code) => {
  const one = next(started);
  expect(imageRolloutFault(scenario(one, { r2: reported }), operation, 60_000, one)?.code).toBe(code);
});

test("a rollback replaces the failed replica, and others get the old image one after another", () => {
  const two = next(next(started));
  const failedNode = scenario(two, { r3: { state: "failed" } });
  const fault = imageRolloutFault(failedNode, operation, 60_000, two);
  if (fault === undefined) throw new Error("a failed engine is a fault");
  const rolledBack = rollBackImages(two, operation, fault, 60_000, failedNode);
  expect(rolledBack.after.spec.image).toBe("old");
  expect(rolledBack.after.spec.nodes).toMatchObject([
    { id: primary.id },
    { id: "r2", pinned: { image: "new" } },
    { id: "r3", leaving: true },
    { id: "op", number: 4, joining: true },
  ]);
  expect(retainsNewImage(rolledBack.after, operation)).toBe(false);
  expect(isImageRolledOut(rolledBack.after, scenario(rolledBack.after), rolledBack.operation)).toBe(false);
  expect(imageRolloutFault(failedNode, rolledBack.operation, 60_000, rolledBack.after)).toBeUndefined();
  const step = nextInRollout(rolledBack.after, scenario(rolledBack.after));
  expect(step).toMatchObject({ kind: "restart", nodes: [{ id: "r2" }] });
});

test("once the primary has the image, a failed replica is replaced with it, and the image is retained", () => {
  const two = next(next(started));
  const over = { ...two, status: { ...two.status, primaryNodeId: "r2" } };
  const three = { ...over, spec: { ...over.spec, nodes: over.spec.nodes } };
  const failedNode = scenario(three, { r3: { state: "failed" } });
  const fault = imageRolloutFault(failedNode, operation, 60_000, three);
  if (fault === undefined) throw new Error("a failed engine is a fault");
  const after = rollBackImages(three, operation, fault, 60_000, failedNode).after;
  expect(after.spec.image).toBe("new");
  expect(after.spec.nodes).toMatchObject([
    { id: primary.id, pinned: { image: "old" } },
    { id: "r2" },
    { id: "r3", leaving: true },
    { id: "op", joining: true },
  ]);
  expect(retainsNewImage(after, operation)).toBe(true);
});
