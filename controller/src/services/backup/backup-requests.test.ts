import { expect, test } from "vitest";
import { requestedBackup } from "@holdfast/testing/controller/requested-backup.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { refuseBackup, refuseBeyondQuota, requireCompleted } from "./backup-requests.ts";
import { type BackupObject, type BackupSpec, newBackupObject } from "./backup.ts";

function backups(count: number, state: BackupObject["status"]["state"], spec: Partial<BackupSpec> = {}) {
  return Array.from({ length: count }, (_, at): BackupObject => {
    const made = newBackupObject(`${state}-${at}`, "org", { ...requestedBackup, ...spec }, at);
    return { ...made, status: { ...made.status, state } };
  });
}
const [running] = backups(1, "running") as [BackupObject];
const going = { ...running, metadata: { ...running.metadata, deletionRequestedAt: 1 } };

test.each([
  ["that is Stopped", "wrong_state", () => refuseBackup(runningService({}, { power: "off" }, { state: "Stopped" }))],
  ["in Error", "wrong_state", () => refuseBackup(runningService({}, {}, { state: "Error" }))],
  ["that is being deleted", "wrong_state", () => refuseBackup(runningService({ deletionRequestedAt: 1 }))],
  [
    "of which one runs and three wait",
    "operation_in_progress",
    () => refuseBeyondQuota([running, ...backups(3, "pending")]),
  ],
  ["that has 50 manual ones", "quota_exceeded", () => refuseBeyondQuota(backups(50, "completed"))],
] as const)("no further backup is taken of a service %s", (_, code, refuse) => {
  expect(refuse).toThrow(expect.objectContaining({ key: code.toUpperCase() }));
});

test.each([
  ["that runs", () => refuseBackup(runningService())],
  ["whose image is replaced", () => refuseBackup(runningService({}, {}, { state: "Upgrading" }))],
  ["of which one runs and two wait", () => refuseBeyondQuota([running, ...backups(2, "pending")])],
  ["of which one in progress is being deleted", () => refuseBeyondQuota([going, ...backups(3, "pending")])],
  ["that has 49 manual ones", () => refuseBeyondQuota(backups(49, "completed"))],
  [
    "that has any number of automated ones",
    () => refuseBeyondQuota(backups(90, "completed", { backupType: "automated" })),
  ],
] as const)("a further backup is taken of a service %s", (_, refuse) => {
  expect(refuse).not.toThrow();
});

test("only a completed backup is restored", () => {
  for (const state of ["pending", "running", "verifying", "failed"] as const)
    for (const backup of backups(1, state))
      expect(() => requireCompleted(backup)).toThrow(`The backup must be completed; it is ${state}.`);
  for (const backup of backups(1, "completed")) expect(() => requireCompleted(backup)).not.toThrow();
});
