import { expect, test } from "vitest";
import { newOperation, type OperationObject } from "#operation/operation.ts";
import {
  observedNode,
  observedService,
  replicaOf,
  type Told,
} from "../../../../../test/support/controller/observed-service.ts";
import { runningService } from "../../../../../test/support/controller/service-object.ts";
import { runningMachine } from "../../../../../test/support/machines/machine-object.ts";
import { type ManagedServiceObject, serviceSubject } from "../managed-service.ts";
import { nextTurn, withTurn } from "../member/turns.ts";
import { imageTurnFault, isInPlace, keptImage, rollBackImages, rollsImages, withImagesKept } from "./images-in-turn.ts";

const [primary] = runningService().spec.nodes;
if (primary === undefined) throw new Error("a service has a node");
const change = { from: "old", to: "new", fromVersion: "17.0", toVersion: "17.1" };
const operation: OperationObject = newOperation({
  id: "op",
  subject: serviceSubject("service-1"),
  organizationId: "org",
  type: "maintenance",
  now: 0,
  work: { updates: ["new"], automatic: false, inTurn: true, image: change },
});
const before = runningService(
  {},
  { nodes: [primary, replicaOf("r2", 2), replicaOf("r3", 3)], nextNodeNumber: 4, instanceGeneration: 5, image: "old" },
);
const begun: ManagedServiceObject = {
  ...before,
  spec: { ...before.spec, image: "new", nodes: withImagesKept(before, change, undefined) },
};

/** Every machine has the image that it is to have now, but for what is said of it. */
function world(service: ManagedServiceObject, told: Readonly<Record<string, Told>> = {}) {
  const { spec } = service;
  const nodes = spec.nodes.map((node) => {
    const { image } = node.keeps ?? spec;
    const own = {
      state: "running",
      generation: BigInt(spec.instanceGeneration),
      restartCount: 0n,
      engineVersion: image === "new" ? "17.1" : "17.0",
      checks: [],
      rejectedParameters: {},
      replication: { state: "streaming" },
      ...told[node.id],
    };
    return observedNode(node, own, { machine: runningMachine(node.id, { image }) });
  });
  return observedService(nodes);
}
const keeping = ({ spec }: ManagedServiceObject) => spec.nodes.map(({ keeps }) => keeps?.image);
const next = (service: ManagedServiceObject) => withTurn(service, world(service));

test("an image rolls where a replica runs, and comes to all at once elsewhere", () => {
  const status = (replicaStatus: "Running" | "Error") => ({
    nodes: [{ id: "r2", status: replicaStatus, address: "", publicAddress: "" }],
  });
  const nodes = before.spec.nodes.slice(0, 2);
  expect(rollsImages(runningService({}, { nodes }, status("Running")))).toBe(true);
  expect(rollsImages(runningService({}, { nodes }, status("Error")))).toBe(false);
  expect(rollsImages(runningService())).toBe(false);
});

test("the replicas get it one after another, and the primary once it gave way", () => {
  expect(keeping(begun)).toEqual(["old", "old", "old"]);
  const one = next(begun);
  expect(keeping(one)).toEqual(["old", undefined, "old"]);
  expect(one.spec.instanceGeneration).toBe(7);
  const two = next(one);
  expect(keeping(two)).toEqual(["old", undefined, undefined]);
  expect(nextTurn(two, world(two))).toMatchObject({ kind: "switchOver", to: { id: "r2" } });
  const over = { ...two, status: { ...two.status, primaryNodeId: "r2" } };
  const three = next(over);
  expect(keeping(three)).toEqual([undefined, undefined, undefined]);
  expect(nextTurn(three, world(three))).toBeUndefined();
});

test("it never comes to a primary without a replica that has it", () => {
  const away = world(begun);
  const nodes = away.nodes.map((seen) => (seen.node.id === primary.id ? seen : { ...seen, connected: false }));
  expect(nextTurn(begun, { ...away, nodes })).toBeUndefined();
});

test.each<[what: string, Told, code: string | undefined]>([
  ["that runs", {}, undefined],
  ["whose engine does not come up", { state: "failed", reason: "no" }, "engine_failed"],
  ["that has another version", { engineVersion: "17.0" }, "not_healthy"],
  [
    "that orders texts anew",
    { checks: [{ name: "collation", status: "degraded", reason: "ICU" }] } as never,
    "text_order",
  ],
])("a replica %s is judged", (_what, told, code) => {
  const one = next(begun);
  expect(imageTurnFault(world(one, { r2: told }), operation, 60_000, one)?.code).toBe(code);
});

test("on the way back the harmed replica is made anew, and others get the old image one after another", () => {
  const two = next(next(begun));
  const harmed = world(two, { r3: { state: "failed" } });
  const fault = imageTurnFault(harmed, operation, 60_000, two);
  if (fault === undefined) throw new Error("a failed engine is a fault");
  const back = rollBackImages(two, operation, fault, 60_000, harmed);
  expect(back.after.spec.image).toBe("old");
  expect(back.after.spec.nodes).toMatchObject([
    { id: primary.id },
    { id: "r2", keeps: { image: "new" } },
    { id: "r3", leaving: true },
    { id: "op", number: 4, joining: true },
  ]);
  expect(keptImage(back.after, operation)).toBe(false);
  expect(isInPlace(back.after, world(back.after), back.operation)).toBe(false);
  expect(imageTurnFault(harmed, back.operation, 60_000, back.after)).toBeUndefined();
  const turn = nextTurn(back.after, world(back.after));
  expect(turn).toMatchObject({ kind: "restart", nodes: [{ id: "r2" }] });
});

test("once the primary has the image, a replica that it harms is made anew with it, and the image stays", () => {
  const two = next(next(begun));
  const over = { ...two, status: { ...two.status, primaryNodeId: "r2" } };
  const three = { ...over, spec: { ...over.spec, nodes: over.spec.nodes } };
  const harmed = world(three, { r3: { state: "failed" } });
  const fault = imageTurnFault(harmed, operation, 60_000, three);
  if (fault === undefined) throw new Error("a failed engine is a fault");
  const after = rollBackImages(three, operation, fault, 60_000, harmed).after;
  expect(after.spec.image).toBe("new");
  expect(after.spec.nodes).toMatchObject([
    { id: primary.id, keeps: { image: "old" } },
    { id: "r2" },
    { id: "r3", leaving: true },
    { id: "op", joining: true },
  ]);
  expect(keptImage(after, operation)).toBe(true);
});
