import { expect, test } from "vitest";
import { observedNode, observedService, replicaOf } from "../../../../../test/support/controller/observed-service.ts";
import { runningService } from "../../../../../test/support/controller/service-object.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { beginMove, moveFault, nodeToMove, rollBackMove, successorInPlace, withMoved } from "./move-node.ts";
import { named } from "./succession.ts";

const [primary] = runningService().spec.nodes;
if (primary === undefined) throw new Error("a service has a node");
const replica = replicaOf("r2", 2);
const service = runningService({}, { nodes: [primary, replica], nextNodeNumber: 3 });
const asked = { nodeId: "r3", operationId: "op", now: 0 };

/** All nodes follow, but for these; `leaving`: those whose host is drained. */
function world({ spec }: ManagedServiceObject, leaving: readonly string[] = [], away: readonly string[] = []) {
  const told = { state: "running", replication: { role: "replica", state: "streaming" } };
  const nodes = spec.nodes.map((node) => {
    const mustMove = leaving.includes(node.id) && { mustMove: true as const };
    return observedNode(node, told, { connected: !away.includes(node.id), ...mustMove });
  });
  return observedService(nodes);
}

const joined = (made: ManagedServiceObject): ManagedServiceObject => {
  const nodes = made.spec.nodes.map(({ joining: _joining, ...node }): NodeSpec => node);
  return { ...made, spec: { ...made.spec, nodes }, status: { ...made.status, operationId: null } };
};
const ids = ({ spec }: ManagedServiceObject, test: (node: NodeSpec) => boolean) =>
  spec.nodes.filter(test).map(({ id }) => id);

test("replicas move before their primary, one at a time, and a node on its own never does", () => {
  expect(nodeToMove(service, world(service))).toBeUndefined();
  expect(nodeToMove(service, world(service, ["node-1", "r2"]))?.id).toBe("r2");
  expect(nodeToMove(service, world(service, ["node-1"]))?.id).toBe("node-1");
  const { after } = beginMove(service, replica, asked);
  expect(nodeToMove({ ...after, status: service.status }, world(after, ["node-1"]))).toBeUndefined();
  const alone = runningService({}, { nextNodeNumber: 3 });
  expect(nodeToMove(alone, world(alone, ["node-1"]))).toBeUndefined();
});

test("a replica goes once the one in its place follows", () => {
  const { after: begun, operation } = beginMove(service, replica, asked);
  expect(operation.spec).toMatchObject({ type: "move_node", work: { nodeId: "r3", from: "r2" } });
  expect(withMoved(begun, world(begun))).toBe(begun);
  const made = joined(begun);
  expect(withMoved(made, world(made, [], ["r3"]))).toBe(made);
  const left = withMoved(made, world(made));
  expect(ids(left, ({ leaving }) => leaving === true)).toEqual(["r2"]);
  const gone = { ...left, spec: { ...left.spec, nodes: left.spec.nodes.filter(({ id }) => id !== "r2") } };
  expect(ids(withMoved(gone, world(gone)), ({ replaces }) => replaces !== undefined)).toEqual([]);
});

test("a primary goes once it gave way", () => {
  const made = joined(beginMove(service, primary, asked).after);
  expect(successorInPlace(made, world(made, [], ["r3"]))).toBeUndefined();
  expect(successorInPlace(made, world(made))?.id).toBe("r3");
  expect(withMoved(made, world(made))).toBe(made);
  const over = named(made, "r3", 0);
  expect(ids(withMoved(over, world(over)), ({ leaving }) => leaving === true)).toEqual(["node-1"]);
});

test("a primary that did not give way is asked no second time, and the new node goes again", () => {
  const { after, operation } = beginMove(service, primary, asked);
  const made = joined(after);
  const nodes = made.spec.nodes.map((node) =>
    node.replaces === undefined ? node : { ...node, replaces: { ...node.replaces, asked: true as const } },
  );
  const failed = { ...made, spec: { ...made.spec, nodes } };
  expect(successorInPlace(failed, world(failed))).toBeUndefined();
  const fault = moveFault(failed, world(failed), operation, "r3", 0);
  expect(fault).toMatchObject({ code: "switchover_failed" });
  if (fault === undefined) return;
  const back = rollBackMove(failed, operation, fault, "r3", 0);
  expect(ids(back.after, ({ leaving }) => leaving === true)).toEqual(["r3"]);
  expect(moveFault(back.after, world(back.after), back.operation, "r3", 0)).toBeUndefined();
});
