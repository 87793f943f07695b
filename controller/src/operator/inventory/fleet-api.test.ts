import { randomBytes } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import { createCursors } from "#kernel/page/cursor.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import { newServiceObject } from "@holdfast/testing/controller/service-object.ts";
import { createFleetApi, primaryLeaseMessage } from "./fleet-api.ts";

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
    requestedAt: timestampFromMs(99_600),
    expiresAt: timestampFromMs(99_700 + primaryLeaseMs),
    engineUnresponsive: true,
  });
});

test("a lease known elsewhere has no times, and is revoked during a primary change", () => {
  const primaryChange = { from: machineId, to: "", step: "fence", since: 0 } as const;
  const fenced = { ...service, spec: { ...service.spec, primaryChange } };
  const message = primaryLeaseMessage(fenced, {
    fleet: { session: () => undefined, leaseReport: () => undefined },
    clock,
  });
  expect(message).toMatchObject({ controllerId: "", revoked: true, engineUnresponsive: false });
  expect(message).not.toHaveProperty("requestedAt");
  expect(message).not.toHaveProperty("expiresAt");
});

test("the deprecated ListRights has the entries of ListPrimaryLeases under the former names of fields", async () => {
  const replicated = { ...service, spec: { ...service.spec, nextNodeNumber: 2 } };
  const leaseReport = () => ({ requestedAgoMs: 400, grantedAgoMs: 300, isEngineUnresponsive: true });
  const page = (accepts: (object: unknown) => boolean) => ({
    items: [service, replicated].filter(accepts).map((object) => ({ object })),
    next: undefined,
  });
  const { handlers } = createFleetApi({
    services: { page },
    fleet: { session, leaseReport },
    cursors: createCursors(createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) })),
    clock,
  } as never);
  const list = (method: string) => handlers[method]?.({} as never, testCall());
  const lease = { serviceId: service.metadata.id, machineId, term: 1n, controllerId: "controller-2", revoked: false };
  const [requested, end] = [timestampFromMs(99_600), timestampFromMs(99_700 + primaryLeaseMs)];
  expect(await list("listPrimaryLeases")).toEqual({
    leases: [{ ...lease, requestedAt: requested, expiresAt: end, engineUnresponsive: true }],
  });
  expect(await list("listRights")).toEqual({
    rights: [{ ...lease, askedAt: requested, until: end, engineSilent: true }],
  });
});
