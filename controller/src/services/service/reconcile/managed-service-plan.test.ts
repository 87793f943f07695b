import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { newServiceObject, node, runningService } from "@holdfast/testing/controller/service-object.ts";
import { observedNode, observedService, replicaOf } from "@holdfast/testing/controller/observed-service.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import type { ObservedNode } from "./observed-service.ts";
import { serviceSubject } from "../managed-service.ts";
import { engineFailedForMs, faultOf, isHealthy, planManagedService } from "./managed-service-plan.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "../service-operations.ts";
import { disconnectedAfterMs } from "../member/members.ts";

test.each([
  ["all is well", { liveness: "healthy", listener: "healthy" }, true],
  ["one takes no write", { liveness: "unhealthy", listener: "healthy" }, false],
  ["one is not reached at an address of the service", { liveness: "healthy", listener: "unhealthy" }, false],
  ["one has much log to retain on a small disk", { liveness: "healthy", storage: "unhealthy" }, true],
  ["one has an agent without reports of listeners", { liveness: "healthy" }, true],
])("a service's engines are up when %s: %j %s", (_, checks, expected) => {
  const { service } = newServiceObject();
  const instance = create(InstanceObservationSchema, {
    state: "running",
    generation: BigInt(service.spec.instanceGeneration),
    checks: Object.entries(checks).map(([name, status]) => ({ name, status })),
  });
  const observed = {
    node,
    machine: runningMachine(node.id, {}),
    instance,
    connected: true,
    isCurrent: true,
    stoppedForDrain: false,
    silentHost: undefined,
  };
  expect(isHealthy(service, { nodes: [observed], names: "verified", isChanging: false })).toBe(expected);
});

const requestedAt = 25_000;
test.each([
  ["not immediately", engineFailedForMs - 1, undefined, undefined],
  ["after a while", engineFailedForMs, undefined, "engine_failed"],
  ["not for a failure before the operation", engineFailedForMs, requestedAt, undefined],
  ["after as long an operation", requestedAt + engineFailedForMs, requestedAt, "engine_failed"],
])("an engine that fails is the end of it: %s", (_, now, createdAt, code) => {
  const request = { id: "op", subject: serviceSubject("s-1"), organizationId: "org", type: serviceOperations.start };
  const operation = createdAt === undefined ? undefined : newOperation({ ...request, now: createdAt });
  const failed = observedNode(node, { state: "failed", reason: "It ended.", since: { seconds: 0n, nanos: 0 } });
  expect(faultOf(observedService([failed]), operation, now)?.code).toBe(code);
});

test.each([
  ["fails no operation that began after it", 1_000, undefined],
  ["fails an operation that it interrupts", 3_000, "machine_failed"],
  ["fails the operation without a time", undefined, "machine_failed"],
])("a machine that ended often %s", (_, crashedAt, code) => {
  const machine = runningMachine(node.id, {});
  const status = { ...machine.status, state: "failed", reason: "It ended 5 times.", crashedAt } as const;
  const request = { id: "op", subject: serviceSubject("s-1"), organizationId: "org", type: serviceOperations.start };
  const operation = newOperation({ ...request, now: 2_000 });
  const failed = observedNode(node, {}, { machine: { ...machine, status } });
  expect(faultOf(observedService([failed]), operation, 2_500)?.code).toBe(code);
  expect(faultOf(observedService([failed]), undefined, 2_500)?.code).toBe("machine_failed");
});

test("the machine of a restore that lacks memory has it until the data are there", () => {
  const gib = 1024 ** 3;
  const origin = { kind: "recover", restoreId: "r-1", serviceId: "s-1", backupId: "b-1", targetTime: null } as const;
  const service = runningService({}, { nodes: [node], origin: { ...origin, finishedAt: null } });
  const generation = BigInt(service.spec.instanceGeneration);
  const restore = { restoreId: "r-1", state: "failed", errorCode: "plan_too_small", reason: "Too little memory." };
  const replayMemory = { bytes: 8 * gib, refused: undefined };
  const stepsOf = (observed: ObservedNode) => planManagedService(service, observedService([observed]));
  const machineOf = (memoryGib: number, sizedGib: number): MachineObject => {
    const machine = runningMachine(node.id, { memoryBytes: memoryGib * gib, ownMemoryBytes: gib });
    const { vcpu, rootBytes, diskBytes } = machine.spec;
    const size = { vcpu, rootBytes, diskBytes, memoryBytes: sizedGib * gib };
    return { ...machine, status: { ...machine.status, size } };
  };

  const failed = observedNode(node, { state: "failed", generation, restore }, { replayMemory });
  expect(stepsOf(failed)).toContainEqual({ kind: "raiseMemory", node, memoryBytes: 8 * gib });
  expect(stepsOf({ ...failed, machine: machineOf(8, 1) }).map(({ kind }) => kind)).not.toContain("converge");
  expect(stepsOf({ ...failed, machine: machineOf(8, 8) })).toContainEqual(
    expect.objectContaining({ kind: "converge", node, running: true }),
  );
  expect(faultOf(observedService([failed]), undefined, 0)).toBeUndefined();
  const refused = { ...failed, replayMemory: { bytes: 8 * gib, refused: "The host is full." } };
  expect(faultOf(observedService([refused]), undefined, 0)).toEqual({
    code: "restore_failed",
    message: "Too little memory. The host is full.",
  });

  const finished = observedNode(node, { state: "running", generation, restore: { ...restore, state: "finished" } });
  const [step] = stepsOf({ ...finished, machine: machineOf(8, 8) });
  expect(step).toMatchObject({ kind: "fitMachine", size: { memoryBytes: gib } });
});

test.each([
  ["is shut off first", { power: "on" }, "running", ["powerMachine"]],
  ["is waited for until it is off", { power: "off" }, "running", []],
  ["stays when it is off", { power: "off" }, "stopped", ["forget"]],
  ["stays when it cannot run", { power: "off" }, "failed", ["forget"]],
] as const)("the machine of a deleted service with a retained disk %s", (_, spec, state, steps) => {
  const { service } = newServiceObject();
  const deleted = { ...service, metadata: { ...service.metadata, deletionRequestedAt: 1 } };
  const created = runningMachine(node.id, spec);
  const machine = { ...created, status: { ...created.status, state } };
  const at = { node, machine, instance: undefined, connected: false, isCurrent: false, stoppedForDrain: false };
  const observed = { nodes: [{ ...at, silentHost: undefined }], names: "absent", isChanging: false } as const;
  expect(planManagedService(deleted, { ...observed, retainsDisks: true }).map(({ kind }) => kind)).toEqual(steps);
  expect(planManagedService(deleted, observed).map(({ kind }) => kind)).toEqual(["deleteMachine"]);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["one that is disconnected and awaits no update",      { delivered: 1, desired: 1 }, 0,               true],
  ["none that awaits its update and was just disconnected", { delivered: 0, desired: 1 }, disconnectedAfterMs - 1, false],
  ["one that awaits its update and stays disconnected",  { delivered: 0, desired: 1 }, disconnectedAfterMs,     true],
])("a service is well without %s", (_, restarts, awayMs, expected) => {
  const replica = { ...replicaOf("r2", 2), restarts };
  const service = runningService({}, { nodes: [node, replica], nextNodeNumber: 3, restartCount: 1 });
  const { instanceGeneration: generation } = service.spec;
  const primary = observedNode(node, { state: "running", generation: BigInt(generation), restartCount: 1n });
  const away = observedNode(replica, {}, { connected: false, isCurrent: false, instance: undefined, disconnectedMs: awayMs });
  expect(isHealthy(service, observedService([primary, away]))).toBe(expected);
});
