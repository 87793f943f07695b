import { expect, test } from "vitest";
import { observedNode, observedService, replicaOf } from "@holdfast/testing/controller/observed-service.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { beginMove, moveFault, nodeToMove, rollBackMove, replacementPrimary, withCompletedMoves } from "./move-node.ts";
import { withNamedPrimary } from "./primary-replicas/primary-change.ts";

const [primary] = runningService().spec.nodes;
if (primary === undefined) throw new Error("a service has a node");
const replica = replicaOf("r2", 2);
const service = runningService({}, { nodes: [primary, replica], nextNodeNumber: 3 });
const args = { nodeId: "r3", operationId: "op", now: 0 };

/** All nodes follow, except these; `leaving`: nodes on drained hosts. */
function scenario({ spec }: ManagedServiceObject, leaving: readonly string[] = [], away: readonly string[] = []) {
  const reported = { state: "running", replication: { role: "replica", state: "streaming" } };
  const nodes = spec.nodes.map((node) => {
    const mustMove = leaving.includes(node.id) && { mustMove: true as const };
    return observedNode(node, reported, { connected: !away.includes(node.id), ...mustMove });
  });
  return observedService(nodes);
}

const joined = (created: ManagedServiceObject): ManagedServiceObject => {
  const nodes = created.spec.nodes.map(({ joining: _joining, ...node }): NodeSpec => node);
  return { ...created, spec: { ...created.spec, nodes }, status: { ...created.status, operationId: null } };
};
const ids = ({ spec }: ManagedServiceObject, test: (node: NodeSpec) => boolean) =>
  spec.nodes.filter(test).map(({ id }) => id);

test("replicas move before their primary, one at a time, and a node on its own never does", () => {
  expect(nodeToMove(service, scenario(service))).toBeUndefined();
  expect(nodeToMove(service, scenario(service, ["node-1", "r2"]))?.id).toBe("r2");
  expect(nodeToMove(service, scenario(service, ["node-1"]))?.id).toBe("node-1");
  const { after } = beginMove(service, replica, args);
  expect(nodeToMove({ ...after, status: service.status }, scenario(after, ["node-1"]))).toBeUndefined();
  const alone = runningService({}, { nextNodeNumber: 3 });
  expect(nodeToMove(alone, scenario(alone, ["node-1"]))).toBeUndefined();
});

test("a replica goes once the one in its place follows", () => {
  const { after: started, operation } = beginMove(service, replica, args);
  expect(operation.spec).toMatchObject({ type: "move_node", work: { nodeId: "r3", from: "r2" } });
  expect(withCompletedMoves(started, scenario(started))).toBe(started);
  const created = joined(started);
  expect(withCompletedMoves(created, scenario(created, [], ["r3"]))).toBe(created);
  const remaining = withCompletedMoves(created, scenario(created));
  expect(ids(remaining, ({ leaving }) => leaving === true)).toEqual(["r2"]);
  const removed = {
    ...remaining,
    spec: { ...remaining.spec, nodes: remaining.spec.nodes.filter(({ id }) => id !== "r2") },
  };
  expect(ids(withCompletedMoves(removed, scenario(removed)), ({ replaces }) => replaces !== undefined)).toEqual([]);
});

test("a primary goes once it gave way", () => {
  const created = joined(beginMove(service, primary, args).after);
  expect(replacementPrimary(created, scenario(created, [], ["r3"]))).toBeUndefined();
  expect(replacementPrimary(created, scenario(created))?.id).toBe("r3");
  expect(withCompletedMoves(created, scenario(created))).toBe(created);
  const over = withNamedPrimary(created, "r3", 0);
  expect(ids(withCompletedMoves(over, scenario(over)), ({ leaving }) => leaving === true)).toEqual(["node-1"]);
});

test("a primary that did not yield gets no second request, and the new node is removed again", () => {
  const { after, operation } = beginMove(service, primary, args);
  const created = joined(after);
  const nodes = created.spec.nodes.map((node) =>
    node.replaces === undefined
      ? node
      : { ...node, replaces: { ...node.replaces, switchoverRequested: true as const } },
  );
  const failed = { ...created, spec: { ...created.spec, nodes } };
  expect(replacementPrimary(failed, scenario(failed))).toBeUndefined();
  const fault = moveFault(failed, scenario(failed), operation, "r3", 0);
  expect(fault).toMatchObject({ code: "switchover_failed" });
  if (fault === undefined) return;
  const rolledBack = rollBackMove(failed, operation, fault, "r3", 0);
  expect(ids(rolledBack.after, ({ leaving }) => leaving === true)).toEqual(["r3"]);
  expect(moveFault(rolledBack.after, scenario(rolledBack.after), rolledBack.operation, "r3", 0)).toBeUndefined();
});
