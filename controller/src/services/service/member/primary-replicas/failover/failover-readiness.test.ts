import { create } from "@bufbuild/protobuf";
import { ReadReplicationResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import { PrimaryChangeScenario } from "@holdfast/testing/controller/primary-change-scenario.ts";
import { isReadyForSwitchover, requireReadyForSwitchover } from "./failover-readiness.ts";

const signal = new AbortController().signal;

/** A service of MySQL whose replica reports these positions, the last one from then on. */
function replicaAt(...positions: readonly string[]) {
  const { object } = new PrimaryChangeScenario();
  const service = { ...object, spec: { ...object.spec, databaseType: "mysql" as const } };
  const left = [...positions];
  const fleet = {
    run: async (id: string) => {
      const isPrimary = id === service.status.primaryNodeId;
      const replayedPosition = isPrimary ? "p:1-9" : left.length > 1 ? left.shift() : left[0];
      const value = create(ReadReplicationResultSchema, {
        role: isPrimary ? "primary" : "replica",
        position: "p:1-9",
        streaming: true,
        ...(replayedPosition !== undefined && { replayedPosition }),
      });
      return { output: { case: "readReplication", value } } as never;
    },
  };
  const replica = service.spec.nodes.find(({ id }) => id !== service.status.primaryNodeId)?.id ?? "";
  return { service, replica, deps: { fleet } };
}

test("a replica that replays the primary's position within a second is ready", async () => {
  const { service, replica, deps } = replicaAt("p:1-7", "p:1-8", "p:1-9");
  expect(await isReadyForSwitchover(service, replica, deps, signal)).toBe(true);
});

test("a replica that applies a long transaction is not ready, although its last commit is new", async () => {
  const { service, replica, deps } = replicaAt("p:1-8");
  expect(await isReadyForSwitchover(service, replica, deps, signal)).toBe(false);
});

test("a requested switchover waits while the replica catches up", async () => {
  const { service, replica, deps } = replicaAt(...Array.from({ length: 20 }, () => "p:1-8"), "p:1-9");
  await requireReadyForSwitchover(service, replica, deps, signal);
});

test("a requested switchover is refused without a wait if the primary lacks commits of the replica", async () => {
  const { service, replica, deps } = replicaAt("p:1-8,r:1");
  const began = performance.now();
  await expect(requireReadyForSwitchover(service, replica, deps, signal)).rejects.toThrow("has commits");
  expect(performance.now() - began).toBeLessThan(5_000);
});
