import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { BackupObservationSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { expect, test } from "vitest";
import { serviceSubject } from "../service/managed-service.ts";
import { newBackupObject } from "./backup.ts";
import { requestedBackup } from "@holdfast/testing/controller/requested-backup.ts";
import { retriesMax } from "./backup-plan.ts";
import { advanceBackup, advanceVerification } from "./backup-steps.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { backupOperations } from "./backup-operations.ts";

const running = advanceBackup(
  newBackupObject("b-1", "org", requestedBackup, 50),
  undefined,
  { kind: "begin", machineId: "m", term: 1, isFull: true },
  100,
).backup;

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["files with log",             "0/3000100", 180,       200,       { restoresTo: 180, consistentAt: 200 }],
  ["a snapshot",                 "",          180,       undefined, { restoresTo: 180 }],
])("a backup of %s restores to no moment later than its data", (_, consistentPosition, dataMs, consistentMs, moments) => {
  const report = create(BackupObservationSchema, {
    state: "stored",
    consistentPosition,
    dataTime: timestampFromMs(dataMs),
    ...(consistentMs !== undefined && { consistentTime: timestampFromMs(consistentMs) }),
  });
  const { restoresTo, consistentAt } = advanceBackup(running, undefined, { kind: "stored", report }, 300).backup.status;
  expect({ restoresTo, ...(consistentAt !== undefined && { consistentAt }) }).toEqual(moments);
});

const inVerification = { ...running, spec: { ...running.spec, verification: "op-1" } };
const operation = newOperation({
  id: "op-1",
  subject: serviceSubject("service-1"),
  organizationId: "org",
  type: backupOperations.backup,
  now: 100,
});
const away = { kind: "failed", error: new Error("connect ECONNREFUSED 10.0.0.1:9000") } as const;

test("a verification is repeated while the store fails, and ends with a message of the catalog", () => {
  let backup: typeof inVerification = inVerification;
  const pauses: number[] = [];
  for (let index = 0; index < retriesMax; index += 1) {
    const after = advanceVerification(backup, operation, away, 1_000);
    expect(after.operation).toBe(operation);
    expect(after.backup.spec.verification).toBe("op-1");
    pauses.push((after.backup.status.retry?.at ?? 0) - 1_000);
    backup = { ...backup, ...after.backup, spec: { ...backup.spec, ...after.backup.spec, verification: "op-1" } };
  }
  expect(pauses).toEqual([5_000, 25_000, 125_000]);
  const last = advanceVerification(backup, operation, away, 1_000);
  expect(last.operation?.status.error).toMatchObject({ code: "store_failed" });
  expect(JSON.stringify(last)).not.toContain("ECONNREFUSED");
  expect(last.backup).toMatchObject({ spec: { verification: null }, status: { damage: expect.any(String) } });
});

test("a verification that passes after a failure leaves no pause", () => {
  const { backup } = advanceVerification(inVerification, operation, away, 1_000);
  const after = advanceVerification(backup, operation, { kind: "passed" }, 6_000);
  expect(after.backup.status).toMatchObject({ verifiedAt: 6_000 });
  expect(after.backup.status).not.toHaveProperty("retry");
  expect(after.operation?.status.finishedAt).toBe(6_000);
});
