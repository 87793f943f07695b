import { create } from "@bufbuild/protobuf";
import { BackupObservationSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { askedBackup } from "../../../../test/support/controller/asked-backup.ts";
import { runningService } from "../../../../test/support/controller/service-object.ts";
import { newOperation } from "#operation/operation.ts";
import { serviceSubject } from "../service/managed-service.ts";
import { backupLifecycle } from "./backup-lifecycle.ts";
import { furtherAttemptsMax, type ObservedBackup, planBackup, silentForMs } from "./backup-plan.ts";
import { advanceBackup } from "./backup-steps.ts";
import { type BackupObject, hasEnded, newBackup } from "./backup.ts";

const now = 1_000_000;
function backup(status: Partial<BackupObject["status"]> = {}, spec: Partial<BackupObject["spec"]> = {}): BackupObject {
  const made = newBackup("b-1", "org", { ...askedBackup, ...spec }, now);
  return { ...made, spec: { ...made.spec, ...spec }, status: { ...made.status, ...status } };
}

const running = backup({ state: "running", attempt: 1, machineId: "node-1", startedAt: now });
const verifying = backup({ state: "verifying", attempt: 1, machineId: "node-1", startedAt: now });
const increment = backup({}, { kind: "incremental", baseId: "b-0" });
const again = { ...increment.status, attempt: 1 };
const told = (state: string, errorCode = "") =>
  create(BackupObservationSchema, { backupId: "b-1", attempt: 1, state, errorCode, error: "why" });

function observed(over: Partial<ObservedBackup> = {}): ObservedBackup {
  const service = runningService();
  const base = {
    machineId: "node-1",
    isUp: true,
    isClosed: true,
    isNext: true,
    hasRoom: true,
    isLogAwaited: false,
    hasBase: false,
  };
  return { service, ...base, told: undefined, refusal: undefined, check: undefined, ...over };
}

const leaving = runningService({ deletionRequestedAt: now });
const closed = runningService({ deletionRequestedAt: now }, { closed: true });
const off = runningService({}, { power: "off" });
const damaged = Object.assign(new Error("a frame does not open"), { name: "BackupDamaged" });

test.each([
  ["begins when it is its turn", backup(), {}, 0, { kind: "begin", machineId: "node-1" }],
  ["waits for those before it", backup(), { isNext: false }, 0, { kind: "wait", step: "WaitForTurn" }],
  ["waits for its engine", backup(), { isUp: false }, 0, { kind: "wait", step: "WaitForService" }],
  ["waits for others of its host", backup(), { hasRoom: false }, 0, { kind: "wait", step: "WaitForHost" }],
  ["waits for the log that goes on from it", backup(), { isLogAwaited: true }, 0, { kind: "wait", step: "FollowLog" }],
  ["fails when its service stops", backup(), { service: off }, 0, { kind: "fail", code: "service_stopped" }],
  ["fails when its service goes", backup(), { service: leaving }, 0, { kind: "fail", code: "service_deleted" }],
  ["is taken of a service that goes", backup({}, { trigger: "final" }), { service: leaving }, 0, { kind: "begin" }],
  [
    "waits for the clients of a service that goes",
    backup({}, { trigger: "final" }),
    { service: closed, isClosed: false },
    0,
    { kind: "wait", step: "WaitForService" },
  ],
  ["is taken once they are gone", backup({}, { trigger: "final" }), { service: closed }, 0, { kind: "begin" }],
  ["fails when its service is gone", running, { service: undefined }, 0, { kind: "fail", code: "service_deleted" }],
  ["is cancelled", backup({}, { cancelRequested: true }), {}, 0, { kind: "fail", code: "cancelled" }],
  ["is given to its machine", running, {}, 0, { kind: "start" }],
  [
    "fails when its machine has no use for it",
    running,
    { refusal: { code: "not_supported", message: "" } },
    0,
    { kind: "fail", code: "not_supported" },
  ],
  ["is begun as an increment", increment, { hasBase: true }, 0, { kind: "begin", term: 1, isWhole: false }],
  ["is whole when its base is gone", increment, {}, 0, { kind: "begin", isWhole: true }],
  ["is whole when it is begun again", { ...increment, status: again }, { hasBase: true }, 0, { isWhole: true }],
  [
    "begins anew when its agent knows no increments",
    { ...running, spec: increment.spec },
    { refusal: { code: "not_supported", message: "" } },
    0,
    { kind: "requeue" },
  ],
  [
    "begins anew when its base does not open",
    { ...running, spec: increment.spec },
    { told: told("failed", "damaged") },
    0,
    { kind: "requeue" },
  ],
  ["is followed", running, { told: told("running") }, 0, { kind: "follow" }],
  ["begins anew when its machine restarted", running, { told: told("failed", "interrupted") }, 0, { kind: "requeue" }],
  ["begins anew when its data moved", running, { machineId: "node-2" }, 0, { kind: "requeue" }],
  [
    "fails after so many attempts",
    { ...running, status: { ...running.status, attempt: furtherAttemptsMax + 1 } },
    { machineId: "node-2" },
    0,
    { kind: "fail", code: "interrupted" },
  ],
  ["begins anew when the store refused it", running, { told: told("failed", "store_failed") }, 0, { kind: "requeue" }],
  [
    "waits for the end of the pause after a failure",
    backup({ attempt: 1, retry: { failures: 1, at: now + 5_000 } }),
    {},
    4_999,
    { kind: "wait", step: "WaitForRetry" },
  ],
  [
    "begins anew after the pause",
    backup({ attempt: 1, retry: { failures: 1, at: now + 5_000 } }),
    {},
    5_000,
    { kind: "begin" },
  ],
  [
    "fails as its machine says",
    running,
    { told: told("failed", "damaged") },
    0,
    { kind: "fail", code: "damaged", message: "why" },
  ],
  ["fails without progress", running, { isUp: false }, silentForMs + 1, { kind: "fail", code: "timed_out" }],
  ["is read again when it is stored", running, { told: told("stored") }, silentForMs + 1, { kind: "stored" }],
  ["is checked", verifying, {}, 0, { kind: "check" }],
  ["is completed when the check passed", verifying, { check: { kind: "passed" } }, 0, { kind: "complete" }],
  [
    "is completed though its service is gone",
    verifying,
    { service: undefined, check: { kind: "passed" } },
    0,
    { kind: "complete" },
  ],
  [
    "fails when it is damaged",
    verifying,
    { check: { kind: "failed", error: damaged } },
    0,
    { kind: "fail", code: "damaged" },
  ],
  [
    "is checked again after a pause when the store failed",
    verifying,
    { check: { kind: "failed", error: new Error("503") } },
    0,
    { kind: "checkLater" },
  ],
  [
    "waits for the end of the pause before it is checked again",
    { ...verifying, status: { ...verifying.status, retry: { failures: 1, at: now + 5_000 } } },
    {},
    4_999,
    { kind: "wait", step: "WaitForRetry" },
  ],
  [
    "fails when the store fails for long",
    verifying,
    { check: { kind: "failed", error: new Error("503") } },
    silentForMs + 1,
    { kind: "fail", code: "store_failed" },
  ],
] satisfies [string, BackupObject, Partial<ObservedBackup>, number, object][])(
  "a backup %s",
  (_, of, over, later, step) => {
    expect(planBackup(of, observed(over), now + later)).toMatchObject(step);
  },
);

test("every backup ends, whatever its machine does, and a failed one has a reason", () => {
  const sight = fc.record({
    isUp: fc.boolean(),
    isClosed: fc.boolean(),
    isNext: fc.boolean(),
    machineId: fc.constantFrom("node-1", "node-2"),
    told: fc.constantFrom(undefined, told("running"), told("stored"), told("failed", "interrupted"), told("cancelled")),
    check: fc.constantFrom(
      undefined,
      { kind: "passed" } as const,
      { kind: "failed", error: new Error("503") } as const,
    ),
    laterMs: fc.nat(20 * 60_000),
  });
  fc.assert(
    fc.property(fc.array(sight, { maxLength: 30 }), (sights) => {
      let of = backup();
      let operation: ReturnType<typeof newOperation> | undefined = newOperation({
        id: "op-1",
        subject: serviceSubject("service-1"),
        organizationId: "org",
        type: "backup",
        now,
      });
      let at = now;
      const look = (over: Partial<ObservedBackup>, laterMs: number) => {
        at += laterMs;
        if (hasEnded(of)) return;
        const before = of.status;
        const { attempt } = of.status;
        const seen = over.told === undefined ? over : { ...over, told: { ...over.told, attempt } };
        const after = advanceBackup(of, operation, planBackup(of, observed(seen), at), at);
        ({ backup: of, operation } = after);
        const { state } = of.status;
        if (state !== before.state)
          expect(backupLifecycle.rows.some(([from, , to]) => from === before.state && to === state)).toBe(true);
        expect(after.events).toHaveLength(hasEnded(of) ? 1 : 0);
      };
      for (const { laterMs, ...over } of sights) look(over, laterMs);
      // Nothing of it is heard any more.
      for (let i = 0; i < 60; i++)
        look({ isUp: false, check: { kind: "failed", error: new Error("503") } }, 30 * 60_000);
      expect(hasEnded(of)).toBe(true);
      expect(operation?.status.finishedAt).not.toBeNull();
      if (of.status.state === "failed") expect(of.status.error?.message).not.toBe("");
    }),
    { numRuns: 300 },
  );
});

test("an increment that is begun again goes on from nothing", () => {
  const { backup: first } = advanceBackup(
    increment,
    undefined,
    planBackup(increment, observed({ hasBase: true }), now),
    now,
  );
  expect(first.spec).toMatchObject({ kind: "incremental", baseId: "b-0" });
  expect(first.status).toMatchObject({ state: "running", attempt: 1, term: 1 });
  const seen = observed({ hasBase: true, told: told("failed", "interrupted") });
  const { backup: waits } = advanceBackup(first, undefined, planBackup(first, seen, now), now);
  const later = waits.status.retry?.at ?? now;
  const { backup: second } = advanceBackup(
    waits,
    undefined,
    planBackup(waits, observed({ hasBase: true }), later),
    later,
  );
  expect(second.spec).toMatchObject({ kind: "full" });
  expect(second.spec).not.toHaveProperty("baseId");
  expect(second.status).toMatchObject({ state: "running", attempt: 2 });
});

test("attempts are spread by pauses that grow and end, and are written with the backup", () => {
  const pauses: number[] = [];
  let of = backup();
  let at = now;
  while (!hasEnded(of)) {
    of = advanceBackup(of, undefined, planBackup(of, observed(), at), at).backup;
    if (of.status.state === "pending") {
      pauses.push((of.status.retry?.at ?? at) - at);
      at = of.status.retry?.at ?? at;
      continue;
    }
    const seen = { ...told("failed", "source_failed"), error: "write EPIPE", attempt: of.status.attempt };
    of = advanceBackup(of, undefined, planBackup(of, observed({ told: seen }), at), at).backup;
    if (of.status.state === "pending") {
      pauses.push((of.status.retry?.at ?? at) - at);
      at = of.status.retry?.at ?? at;
    }
  }
  expect(pauses).toEqual([5_000, 25_000, 125_000]);
  expect(of.status.error?.code).toBe("source_failed");
  expect(of.status.error?.message).not.toMatch(/EPIPE/);
});

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["interrupted",   "spawn /usr/bin/node EAGAIN"],
  ["source_failed", "write EPIPE"],
  ["store_failed",  "the store answered 403 to PUT a/b: <Error>SignatureDoesNotMatch</Error>"],
  ["failed",        "EIO: i/o error, read"],
])("a backup whose last attempt is %s fails with words of the catalog", (code, error) => {
  const last = { ...running, status: { ...running.status, attempt: furtherAttemptsMax + 1 } };
  const step = planBackup(last, observed({ told: { ...told("failed", code), error } }), now);
  expect(step).toMatchObject({ kind: "fail", code, message: expect.stringContaining("Each of 4 attempts") });
  expect(step).not.toMatchObject({ message: expect.stringContaining(error) });
});

test("checks that the store fails are spread by pauses, however fast they fail", () => {
  let of: BackupObject = verifying;
  const check = { kind: "failed", error: new Error("connect ECONNREFUSED 10.0.0.1:9000") } as const;
  const pauses: number[] = [];
  for (let at = now; !hasEnded(of) && pauses.length < 100; at = of.status.retry?.at ?? at) {
    of = advanceBackup(of, undefined, planBackup(of, observed({ check }), at), at).backup;
    pauses.push((of.status.retry?.at ?? at) - at);
  }
  expect(pauses.slice(0, 4)).toEqual([5_000, 25_000, 60_000, 60_000]);
  expect(Math.max(...pauses)).toBe(60_000);
  expect(of.status.error).toMatchObject({ code: "store_failed", message: expect.not.stringContaining("ECONNREFUSED") });
});
