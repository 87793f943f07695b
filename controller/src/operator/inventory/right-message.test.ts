import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { rightMs } from "@holdfast/common/right.ts";
import { newServiceObject } from "../../../../test/support/controller/service-object.ts";
import { rightMessage } from "./right-message.ts";

const { service } = newServiceObject();
const machineId = service.status.primaryNodeId;
const clock = { now: () => 100_000 };
const session = () => ({ controllerId: "controller-2", connectedAt: 0, agentVersion: "1.0.0" }) as never;

test("a right lasts from its grant, as this controller heard", () => {
  const heardRight = () => ({ askedAgoMs: 400.25, grantedAgoMs: 300.25, isEngineSilent: true });
  expect(rightMessage(service, { fleet: { session, heardRight }, clock })).toMatchObject({
    machineId,
    controllerId: "controller-2",
    revoked: false,
    askedAt: timestampFromMs(99_600),
    until: timestampFromMs(99_700 + rightMs),
    engineSilent: true,
  });
});

test("one that was heard of elsewhere has no times, and nobody gets it while its primary is replaced", () => {
  const succession = { from: machineId, to: "", step: "fence", since: 0 } as const;
  const fenced = { ...service, spec: { ...service.spec, succession } };
  const told = rightMessage(fenced, { fleet: { session: () => undefined, heardRight: () => undefined }, clock });
  expect(told).toMatchObject({ controllerId: "", revoked: true, engineSilent: false });
  expect(told).not.toHaveProperty("askedAt");
  expect(told).not.toHaveProperty("until");
});
