import { create } from "@bufbuild/protobuf";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { provisioningSteps } from "@holdfast/testing/api/provisioning-steps.ts";
import { newServiceObject, node, runningService } from "@holdfast/testing/controller/service-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { type OperationObject, progressed } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { progressOf } from "./managed-service-progress.ts";
import type { ObservedNode, ObservedService } from "./observed-service.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations, type ServiceOperationType } from "../service-operations.ts";

const replica = { ...node, id: "node-2", hostname: "db-2.local", number: 2 };

const instances = fc
  .record({
    state: fc.constantFrom("absent", "preparing", "starting", "running", "failed", "stopped"),
    generation: fc.constantFrom(0n, 1n),
    restored: fc.option(fc.constantFrom("fetching", "recovering", "severing", "finished"), { nil: undefined }),
    bytes: fc.constantFrom(0n, 50n, 100n),
  })
  .map(({ state, generation, restored, bytes }) => {
    const restore = { restoreId: "op-0", state: restored ?? "", restoredBytes: bytes, totalBytes: 100n };
    return create(InstanceObservationSchema, { state, generation, ...(restored !== undefined && { restore }) });
  });

const machines = fc
  .record({
    state: fc.constantFrom("pending", "starting", "running", "stopped"),
    power: fc.constantFrom("on", "off"),
    address: fc.constantFrom("", "127.0.0.2"),
    image: fc.constantFrom("", "old"),
  })
  .map(({ state, power, address, image }) => {
    const machine = { metadata: { id: node.id }, spec: { power, image }, status: { state, address, reason: "" } };
    return machine as MachineObject;
  });

const nodesOf = (of: ObservedNode["node"], isReplica: boolean) =>
  fc
    .record({
      machine: fc.option(machines, { nil: undefined }),
      connected: fc.boolean(),
      instance: fc.option(instances, { nil: undefined }),
      isCurrent: fc.boolean(),
      silentHost: fc.option(fc.constantFrom("east-1", "east-2"), { nil: undefined }),
    })
    .map(
      (seen): ObservedNode => ({
        ...seen,
        node: of,
        stoppedForDrain: false,
        ...(isReplica && { isReplica: true as const }),
      }),
    );

const observedOf = (isReplicated: boolean): fc.Arbitrary<ObservedService> =>
  fc.record({
    nodes: fc.tuple(nodesOf(node, false), ...(isReplicated ? [nodesOf(replica, true)] : [])),
    names: fc.constantFrom("absent", "outdated", "published", "verified"),
    isChanging: fc.constant(false),
    awaitsFinalBackup: fc.boolean(),
  });

type Observation = readonly [ManagedServiceObject, ObservedService];

/** Each step for as long as it is reported, without those that wait for a host. */
function walk(
  operation: OperationObject,
  observations: readonly Observation[],
): { steps: string[]; progress: number[] } {
  let current = operation;
  const [steps, progress]: [string[], number[]] = [[], []];
  for (const [index, [service, observed]] of observations.entries()) {
    current = progressed(current, progressOf(service, observed, current), index);
    const step = current.status.step ?? "";
    if (step !== steps.at(-1) && !step.startsWith("WaitForHost ")) steps.push(step);
    progress.push(current.status.progressPct);
  }
  return { steps, progress };
}

const types = [
  "create",
  "start",
  "stop",
  "restart",
  "configure",
  "maintenance",
  "upgrade",
  "add_node",
  "remove_node",
  "move_node",
  "failover",
  "resize",
  "expand",
  "delete",
] as const satisfies readonly ServiceOperationType[];

const operationOf = (type: ServiceOperationType): OperationObject =>
  newOperation({
    id: "op-0",
    subject: { kind: "managed-service", id: "service-1" },
    organizationId: "o",
    type: serviceOperations[type],
    now: 0,
  });

describe.each([false, true])("with a replica: %s", (isReplicated) => {
  const services = fc
    .record({ power: fc.constantFrom("on", "off"), step: fc.constantFrom("", "fence", "yield", "promote", "recall") })
    .map(({ power, step }) =>
      runningService({}, {
        power,
        nodes: isReplicated ? [node, replica] : [node],
        ...(step !== "" && { primaryChange: { from: node.id, to: replica.id, step, since: 0 } }),
      } as Partial<ManagedServiceObject["spec"]>),
    );

  test.each(types)("an operation of type %s never moves back, in any order of observations", (type) => {
    fc.assert(
      fc.property(fc.array(fc.tuple(services, observedOf(isReplicated)), { maxLength: 20 }), (observations) => {
        const { steps, progress } = walk(operationOf(type), observations);
        expect(steps).toEqual([...new Set(steps)]);
        expect(progress).toEqual(progress.toSorted((a, b) => a - b));
      }),
      { numRuns: 100 },
    );
  });
});

describe("a restore", () => {
  const { service } = newServiceObject();
  const origin = {
    kind: "restore",
    restoreId: "op-0",
    serviceId: "service-0",
    backupId: "b",
    targetTime: null,
    finishedAt: null,
  } as const;
  const restored = { ...service, spec: { ...service.spec, origin } };

  test("has the spec's six steps in order, in any order of observations", () => {
    fc.assert(
      fc.property(fc.array(observedOf(false), { maxLength: 30 }), (all) => {
        const observations = all.map((observed): Observation => [restored, observed]);
        const { steps } = walk(operationOf("create"), observations);
        expect(steps).toEqual(provisioningSteps.filter((step) => steps.includes(step)));
      }),
      { numRuns: 1_000 },
    );
  });

  describe("of one node", () => {
    const machine = (state: string, address: string) =>
      ({ metadata: { id: node.id }, spec: { power: "on" }, status: { state, address, reason: "" } }) as MachineObject;
    const instance = (state: string, restore: string, restoredBytes: bigint) =>
      create(InstanceObservationSchema, { state, restore: { state: restore, restoredBytes, totalBytes: 100n } });
    const at = (change: Partial<ObservedNode>, names: ObservedService["names"] = "absent"): Observation => [
      restored,
      {
        nodes: [
          {
            node,
            machine: undefined,
            connected: false,
            instance: undefined,
            stoppedForDrain: false,
            isCurrent: true,
            silentHost: undefined,
            ...change,
          },
        ],
        names,
        isChanging: false,
      },
    ];
    const up = { machine: machine("running", "127.0.0.2"), connected: true };
    test("reaches each of the six", () => {
      const { steps, progress } = walk(operationOf("create"), [
        at({}),
        at({ machine: machine("pending", "127.0.0.2") }),
        at({ machine: machine("running", "127.0.0.2") }),
        at(up),
        at({ ...up, instance: instance("preparing", "fetching", 0n) }, "verified"),
        at({ ...up, instance: instance("preparing", "recovering", 100n) }, "verified"),
        // The agent restarts.
        at({ ...up, connected: false, instance: instance("preparing", "recovering", 100n) }, "verified"),
        at({ ...up, instance: instance("preparing", "severing", 100n) }, "verified"),
        at({ ...up, instance: instance("preparing", "finished", 100n) }, "verified"),
        at({ ...up, instance: instance("running", "finished", 100n) }, "verified"),
      ]);
      expect(steps).toEqual(provisioningSteps);
      expect(new Set(progress).size).toBeGreaterThan(provisioningSteps.length);
    });

    test("is not at the restore again if all of it is fetched again after its end", () => {
      const { steps } = walk(operationOf("create"), [
        at({ ...up, instance: instance("absent", "finished", 0n) }, "verified"),
        at({ ...up, instance: instance("absent", "fetching", 100n) }, "verified"),
      ]);
      expect(steps).toEqual(["ProvisioningHealth"]);
    });
  });
});
