import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import { PrimaryLeaseRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { createPrimaryLeases } from "./primary-leases.ts";

/** Primary leases of a controller with a current cache, and a clock that the test sets. */
function scenario() {
  const state = { nowMs: 1_000, refusal: undefined as string | undefined };
  const leases = createPrimaryLeases({
    rules: { refusal: () => state.refusal, untilRevision: async () => undefined },
    revision: async () => 1n,
    hasLease: () => true,
    bootMs: () => state.nowMs,
    onChange: () => undefined,
    log: silentLog,
  });
  const sent: unknown[] = [];
  const session = { machineId: "m", send: (frame: unknown) => sent.push(frame) > 0 };
  const request = (term = 1n, engineUnresponsive = false) =>
    leases.request(
      session,
      create(PrimaryLeaseRequestSchema, { serviceId: "s", term, number: 1n, engineUnresponsive }),
    );
  const outcomes = () => Object.fromEntries(leases.outcomes());
  return { state, leases, request, outcomes, sent };
}

test("each request is decided and counted once", async () => {
  const { state, request, outcomes, sent } = scenario();
  await request();
  state.refusal = "another node is the primary";
  await request();
  expect(outcomes()).toEqual({ granted: 1, late: 0, refused: 1 });
  expect(sent).toMatchObject([{ value: { granted: true } }, { value: { granted: false, reason: state.refusal } }]);
});

test("a lease is late if half of the previous one under the same term is over", async () => {
  const { state, request, outcomes } = scenario();
  await request();
  state.nowMs += primaryLeaseMs / 2;
  await request();
  expect(outcomes()).toMatchObject({ granted: 2, late: 0 });
  state.nowMs += primaryLeaseMs / 2 + 1;
  await request();
  expect(outcomes()).toMatchObject({ granted: 2, late: 1 });
  state.nowMs += primaryLeaseMs;
  await request(2n);
  expect(outcomes()).toMatchObject({ granted: 3, late: 1 });
});

test("a revoked lease is refused under its term, and the time of the last grant is returned", async () => {
  const { state, leases, request, outcomes } = scenario();
  state.nowMs += 500;
  expect(leases.revoke("m", 1n)).toBe(500);
  await request(2n);
  state.nowMs += 700;
  expect(leases.revoke("m", 2n)).toBe(700);
  await request(2n);
  await request(1n);
  // A late revocation of an older term changes nothing.
  leases.revoke("m", 1n);
  await request(2n);
  expect(outcomes()).toMatchObject({ granted: 1, refused: 3 });
  await request(3n);
  expect(outcomes()).toMatchObject({ granted: 2, refused: 3 });
});

test("a machine with an overdue request or an unresponsive engine is suspect for a minute", async () => {
  const { state, leases, request } = scenario();
  const suspect = () => leases.suspects().get("m");
  await request();
  expect(suspect()).toBeUndefined();
  state.nowMs += 2_000;
  expect(suspect()).toMatchObject({ requestedAgoMs: 2_000, isEngineUnresponsive: false });
  await request(1n, true);
  expect(suspect()).toMatchObject({ requestedAgoMs: 0, isEngineUnresponsive: true });
  state.nowMs += 60_000;
  expect(suspect()).toBeUndefined();
});

test("a new stream ends the suspicion, and the last grant is retained", async () => {
  const { state, leases, request } = scenario();
  await request(1n, true);
  state.nowMs += 20_000;
  leases.opened("m");
  leases.opened("without requests");
  expect(leases.suspects().size).toBe(0);
  expect(leases.report("m")).toEqual({ requestedAgoMs: 0, grantedAgoMs: 20_000, isEngineUnresponsive: false });
  expect(leases.report("without requests")).toBeUndefined();
});
