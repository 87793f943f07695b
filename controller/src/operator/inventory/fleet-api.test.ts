import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import { newServiceObject } from "../../../../test/support/controller/service-object.ts";
import { primaryLeaseMessage } from "./fleet-api.ts";

const { service } = newServiceObject();
const machineId = service.status.primaryNodeId;
const clock = { now: () => 100_000 };
const session = () => ({ controllerId: "controller-2", connectedAt: 0, agentVersion: "1.0.0" }) as never;

test("a primary lease lasts from its grant, as reported to this controller", () => {
  const leaseReport = () => ({ requestedAgoMs: 400.25, grantedAgoMs: 300.25, isEngineUnresponsive: true });
  expect(primaryLeaseMessage(service, { fleet: { session, leaseReport }, clock })).toMatchObject({
    machineId,
    controllerId: "controller-2",
    revoked: false,
    askedAt: timestampFromMs(99_600),
    until: timestampFromMs(99_700 + primaryLeaseMs),
    engineSilent: true,
  });
});

test("a lease known elsewhere has no times, and is revoked during a primary change", () => {
  const primaryChange = { from: machineId, to: "", step: "fence", since: 0 } as const;
  const fenced = { ...service, spec: { ...service.spec, primaryChange } };
  const message = primaryLeaseMessage(fenced, {
    fleet: { session: () => undefined, leaseReport: () => undefined },
    clock,
  });
  expect(message).toMatchObject({ controllerId: "", revoked: true, engineSilent: false });
  expect(message).not.toHaveProperty("askedAt");
  expect(message).not.toHaveProperty("until");
});
