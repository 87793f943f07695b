import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { BackupObservationSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { expect, test } from "vitest";
import { newBackup } from "./backup.ts";
import { askedBackup } from "../../../../test/support/controller/asked-backup.ts";
import { advanceBackup } from "./backup-steps.ts";

const begun = advanceBackup(
  newBackup("b-1", "org", askedBackup, 50),
  undefined,
  { kind: "begin", machineId: "m", term: 1, isWhole: true },
  100,
).backup;

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["files with log",             "0/3000100", 180,       200,       { restoresTo: 180, consistentAt: 200 }],
  ["files, of an older agent",   "0/3000100", 200,       undefined, { restoresTo: 100, consistentAt: 200 }],
  ["a snapshot",                 "",          180,       undefined, { restoresTo: 180 }],
])("a backup of %s restores to no moment later than its data", (_, consistentPosition, dataMs, consistentMs, moments) => {
  const told = create(BackupObservationSchema, {
    state: "stored",
    consistentPosition,
    dataTime: timestampFromMs(dataMs),
    ...(consistentMs !== undefined && { consistentTime: timestampFromMs(consistentMs) }),
  });
  const { restoresTo, consistentAt } = advanceBackup(begun, undefined, { kind: "stored", told }, 300).backup.status;
  expect({ restoresTo, ...(consistentAt !== undefined && { consistentAt }) }).toEqual(moments);
});
