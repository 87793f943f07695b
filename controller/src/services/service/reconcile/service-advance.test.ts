import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { newServiceObject, node } from "@holdfast/testing/controller/service-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { type OperationObject, stuckAfterMs } from "#operation/operation.ts";
import { serviceSubject } from "../managed-service.ts";
import type { ObservedService } from "./observed-service.ts";
import { advance } from "./service-advance.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "../service-operations.ts";

const hour = 3_600_000;
const machine = {
  spec: { power: "on", image: "new" },
  status: { state: "starting", reason: "", address: "127.0.0.2" },
  metadata: { id: node.id },
} as MachineObject;
const observed: ObservedService = {
  nodes: [
    {
      node,
      machine,
      connected: false,
      instance: undefined,
      stoppedForDrain: false,
      isCurrent: false,
      silentHost: undefined,
    },
  ],
  names: "published",
  isChanging: false,
};
const creation = newServiceObject();
const maintenance = newOperation({
  id: "op-1",
  subject: serviceSubject("service-1"),
  organizationId: "org",
  type: serviceOperations.maintenance,
  now: 0,
  work: {
    updates: ["new"],
    automatic: false,
    image: { from: "old", to: "new", fromVersion: "17.1", toVersion: "17.2" },
  },
});

test.each<[string, "Provisioning" | "Upgrading", OperationObject]>([
  ["a creation", "Provisioning", creation.operation],
  ["an image under a canary", "Upgrading", maintenance],
])("%s is not stuck for a clock that jumped, and may be after that", (_what, state, started) => {
  const { service: created } = creation;
  let service = { ...created, spec: { ...created.spec, image: "new" }, status: { ...created.status, state } };
  let operation = started;
  const observation = (now: number, clockJumped = false) => {
    const moved = advance(service, observed, operation, now, silentLog, { clockJumped });
    operation = moved.operation ?? operation;
    service = { ...moved.after, status: { ...moved.after.status, state } };
    return { ...operation.status, image: moved.after.spec.image };
  };
  expect(observation(1)).toMatchObject({ state: "running", deadline: 1 + stuckAfterMs, image: "new" });
  expect(observation(hour, true)).toMatchObject({ state: "running", deadline: null, error: null, image: "new" });
  // The canary is rolled back.
  expect(observation(2)).toMatchObject({ state: "running", deadline: 2 + stuckAfterMs, image: "new" });
  const late = observation(3 + stuckAfterMs);
  expect([late.state, late.image]).not.toEqual(["running", "new"]);
});

test("a deadline that was set before the clock was put back comes as soon as any other", () => {
  const { service } = creation;
  const first = advance(service, observed, creation.operation, hour, silentLog).operation;
  const next = advance(service, observed, first, 1, silentLog).operation;
  expect(next?.status.deadline).toBe(1 + stuckAfterMs);
});

test("an operation names the parameters that its engine rejected, once it has restarted", () => {
  const service = { ...creation.service, spec: { ...creation.service.spec, restartCount: 2 } };
  const restart = newOperation({
    id: "op-2",
    subject: serviceSubject("service-1"),
    organizationId: "org",
    type: serviceOperations.restart,
    now: 0,
  });
  const warningsAt = (restartCount: bigint, isCurrent = true) => {
    const rejectedParameters = { TimeZone: 'invalid value for parameter "TimeZone": "Nowhere"' };
    const instance = create(InstanceObservationSchema, { state: "running", restartCount, rejectedParameters });
    const nodes = observed.nodes.map((each) => ({ ...each, connected: true, isCurrent, instance }));
    return advance(service, { ...observed, nodes }, restart, 1, silentLog).operation?.status.warnings;
  };
  expect(warningsAt(1n)).toBeUndefined();
  expect(warningsAt(2n, false)).toBeUndefined();
  expect(warningsAt(2n)).toEqual([
    `${node.hostname} runs with the last accepted value of TimeZone, not with the new one: invalid value for parameter "TimeZone": "Nowhere"`,
  ]);
});
