import { create } from "@bufbuild/protobuf";
import { BackupObservationSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import fc from "fast-check";
import { expect, test } from "vitest";
import { requestedBackup } from "@holdfast/testing/controller/requested-backup.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { serviceSubject } from "../service/managed-service.ts";
import { backupLifecycle } from "./backup-lifecycle.ts";
import { retriesMax, type ObservedBackup, planBackup, stalledAfterMs } from "./backup-plan.ts";
import { advanceBackup } from "./backup-steps.ts";
import { type BackupObject, hasEnded, newBackupObject } from "./backup.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { backupOperations } from "./backup-operations.ts";

const now = 1_000_000;
function backup(status: Partial<BackupObject["status"]> = {}, spec: Partial<BackupObject["spec"]> = {}): BackupObject {
  const made = newBackupObject("b-1", "org", { ...requestedBackup, ...spec }, now);
  return { ...made, spec: { ...made.spec, ...spec }, status: { ...made.status, ...status } };
}

const running = backup({ state: "running", attempt: 1, machineId: "node-1", startedAt: now });
const verifying = backup({ state: "verifying", attempt: 1, machineId: "node-1", startedAt: now });
const increment = backup({}, { kind: "incremental", baseId: "b-0" });
const again = { ...increment.status, attempt: 1 };
const report = (state: string, errorCode = "") =>
  create(BackupObservationSchema, { backupId: "b-1", attempt: 1, state, errorCode, error: "why" });

function observed(over: Partial<ObservedBackup> = {}): ObservedBackup {
  const service = runningService();
  const base = {
    machineId: "node-1",
    isUp: true,
    hasCurrentSettings: true,
    isNext: true,
    hasCapacity: true,
    isLogAwaited: false,
    hasBase: false,
  };
  return { service, ...base, report: undefined, refusal: undefined, check: undefined, ...over };
}

const leaving = runningService({ deletionRequestedAt: now });
const closed = runningService({ deletionRequestedAt: now }, { closed: true });
const off = runningService({}, { power: "off" });
const damaged = Object.assign(new Error("a frame does not open"), { name: "BackupDamaged" });

test.each([
  ["begins when it is next", backup(), {}, 0, { kind: "begin", machineId: "node-1" }],
  ["waits for those before it", backup(), { isNext: false }, 0, { kind: "wait", step: "WaitForTurn" }],
  ["waits for its engine", backup(), { isUp: false }, 0, { kind: "wait", step: "WaitForService" }],
  ["waits for capacity of its host", backup(), { hasCapacity: false }, 0, { kind: "wait", step: "WaitForHost" }],
  ["waits for the log that follows it", backup(), { isLogAwaited: true }, 0, { kind: "wait", step: "FollowLog" }],
  ["fails when its service stops", backup(), { service: off }, 0, { kind: "fail", code: "service_stopped" }],
  [
    "fails when its service is being deleted",
    backup(),
    { service: leaving },
    0,
    { kind: "fail", code: "service_deleted" },
  ],
  [
    "is taken of a service that is being deleted",
    backup({}, { trigger: "final" }),
    { service: leaving },
    0,
    { kind: "begin" },
  ],
  [
    "waits until a service that is being deleted has no clients",
    backup({}, { trigger: "final" }),
    { service: closed, hasCurrentSettings: false },
    0,
    { kind: "wait", step: "WaitForService" },
  ],
  [
    "is taken once clients are disconnected",
    backup({}, { trigger: "final" }),
    { service: closed },
    0,
    { kind: "begin" },
  ],
  ["fails when its service was deleted", running, { service: undefined }, 0, { kind: "fail", code: "service_deleted" }],
  ["is canceled", backup({}, { cancelRequested: true }), {}, 0, { kind: "fail", code: "cancelled" }],
  ["is started on its machine", running, {}, 0, { kind: "start" }],
  [
    "fails when its machine refuses it",
    running,
    { refusal: { code: "not_supported", message: "" } },
    0,
    { kind: "fail", code: "not_supported" },
  ],
  ["begins as an increment", increment, { hasBase: true }, 0, { kind: "begin", term: 1, isFull: false }],
  ["is full when its base was deleted", increment, {}, 0, { kind: "begin", isFull: true }],
  ["is full when it is repeated", { ...increment, status: again }, { hasBase: true }, 0, { isFull: true }],
  [
    "is repeated when its agent refuses increments",
    { ...running, spec: increment.spec },
    { refusal: { code: "not_supported", message: "" } },
    0,
    { kind: "requeue" },
  ],
  [
    "is repeated when its base is damaged",
    { ...running, spec: increment.spec },
    { report: report("failed", "damaged") },
    0,
    { kind: "requeue" },
  ],
  ["is followed", running, { report: report("running") }, 0, { kind: "follow" }],
  [
    "is repeated when its machine restarted",
    running,
    { report: report("failed", "interrupted") },
    0,
    { kind: "requeue" },
  ],
  ["is repeated when the primary moved", running, { machineId: "node-2" }, 0, { kind: "requeue" }],
  [
    "fails after its last attempt",
    { ...running, status: { ...running.status, attempt: retriesMax + 1 } },
    { machineId: "node-2" },
    0,
    { kind: "fail", code: "interrupted" },
  ],
  [
    "is repeated when the store refused it",
    running,
    { report: report("failed", "store_failed") },
    0,
    { kind: "requeue" },
  ],
  [
    "waits for the end of the pause",
    backup({ attempt: 1, retry: { failures: 1, at: now + 5_000 } }),
    {},
    4_999,
    { kind: "wait", step: "WaitForRetry" },
  ],
  [
    "is repeated after the pause",
    backup({ attempt: 1, retry: { failures: 1, at: now + 5_000 } }),
    {},
    5_000,
    { kind: "begin" },
  ],
  [
    "fails with its machine's reason",
    running,
    { report: report("failed", "damaged") },
    0,
    { kind: "fail", code: "damaged", message: "why" },
  ],
  ["fails without progress", running, { isUp: false }, stalledAfterMs + 1, { kind: "fail", code: "timed_out" }],
  ["is verified when it is stored", running, { report: report("stored") }, stalledAfterMs + 1, { kind: "stored" }],
  ["is checked", verifying, {}, 0, { kind: "check" }],
  ["is completed when the check passed", verifying, { check: { kind: "passed" } }, 0, { kind: "complete" }],
  [
    "is completed though its service was deleted",
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
    "fails when the store fails for too long",
    verifying,
    { check: { kind: "failed", error: new Error("503") } },
    stalledAfterMs + 1,
    { kind: "fail", code: "store_failed" },
  ],
] satisfies [string, BackupObject, Partial<ObservedBackup>, number, object][])(
  "a backup %s",
  (_, of, over, later, step) => {
    expect(planBackup(of, observed(over), now + later)).toMatchObject(step);
  },
);

test("every backup ends for all reports of its machine, and a failed one has a reason", () => {
  const sight = fc.record({
    isUp: fc.boolean(),
    hasCurrentSettings: fc.boolean(),
    isNext: fc.boolean(),
    machineId: fc.constantFrom("node-1", "node-2"),
    report: fc.constantFrom(
      undefined,
      report("running"),
      report("stored"),
      report("failed", "interrupted"),
      report("cancelled"),
    ),
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
        type: backupOperations.backup,
        now,
      });
      let at = now;
      const look = (over: Partial<ObservedBackup>, laterMs: number) => {
        at += laterMs;
        if (hasEnded(of)) return;
        const before = of.status;
        const { attempt } = of.status;
        const seen = over.report === undefined ? over : { ...over, report: { ...over.report, attempt } };
        const after = advanceBackup(of, operation, planBackup(of, observed(seen), at), at);
        ({ backup: of, operation } = after);
        const { state } = of.status;
        if (state !== before.state)
          expect(backupLifecycle.rows.some(([from, , to]) => from === before.state && to === state)).toBe(true);
        expect(after.events).toHaveLength(hasEnded(of) ? 1 : 0);
      };
      for (const { laterMs, ...over } of sights) look(over, laterMs);
      // The machine reports nothing any more.
      for (let i = 0; i < 60; i++)
        look({ isUp: false, check: { kind: "failed", error: new Error("503") } }, 30 * 60_000);
      expect(hasEnded(of)).toBe(true);
      expect(operation?.status.finishedAt).not.toBeNull();
      if (of.status.state === "failed") expect(of.status.error?.message).not.toBe("");
    }),
    { numRuns: 300 },
  );
});

test("a repeated increment is a full backup", () => {
  const { backup: first } = advanceBackup(
    increment,
    undefined,
    planBackup(increment, observed({ hasBase: true }), now),
    now,
  );
  expect(first.spec).toMatchObject({ kind: "incremental", baseId: "b-0" });
  expect(first.status).toMatchObject({ state: "running", attempt: 1, term: 1 });
  const seen = observed({ hasBase: true, report: report("failed", "interrupted") });
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

test("attempts are spread by growing pauses that are stored with the backup", () => {
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
    const seen = { ...report("failed", "source_failed"), error: "write EPIPE", attempt: of.status.attempt };
    of = advanceBackup(of, undefined, planBackup(of, observed({ report: seen }), at), at).backup;
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
  ["store_failed",  "the store responded 403 to PUT a/b: <Error>SignatureDoesNotMatch</Error>"],
  ["failed",        "EIO: i/o error, read"],
])("a backup whose last attempt is %s fails with a message of the catalog", (code, error) => {
  const last = { ...running, status: { ...running.status, attempt: retriesMax + 1 } };
  const step = planBackup(last, observed({ report: { ...report("failed", code), error } }), now);
  expect(step).toMatchObject({ kind: "fail", code, message: expect.stringContaining("All 4 attempts failed") });
  expect(step).not.toMatchObject({ message: expect.stringContaining(error) });
});

test("a backup that the engine refused is tried again, and fails with the engine's reason", () => {
  const error = "OpenSearch refused the snapshot: Indices don't have primary shards [orders]";
  const seen = observed({ report: { ...report("failed", "source_refused"), error } });
  expect(planBackup(running, seen, now)).toMatchObject({ kind: "requeue" });
  const last = { ...running, status: { ...running.status, attempt: retriesMax + 1 } };
  const message = `All 4 attempts failed: ${error}`;
  expect(planBackup(last, seen, now)).toMatchObject({ kind: "fail", code: "source_refused", message });
});

test("checks that fail because of the store are spread by pauses", () => {
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
