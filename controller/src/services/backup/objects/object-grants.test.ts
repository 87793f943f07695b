import { create } from "@bufbuild/protobuf";
import { MintObjectUrlsRequestSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { expect, test } from "vitest";
import { requestedBackup } from "@holdfast/testing/controller/requested-backup.ts";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { firstUncovered, grantsOf } from "#fleet/object-grants.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { newArchive } from "../archive/archive.ts";
import { type BackupObject, newBackupObject } from "../backup.ts";
import { type DrillObject, newDrillObject } from "../drill/drill.ts";
import { createBackupObjectGrants } from "./object-grants.ts";

const made = newBackupObject("b-1", "org", requestedBackup, 0);
const backup = (status: Partial<BackupObject["status"]>): BackupObject => ({
  ...made,
  status: { ...made.status, state: "running", machineId: "node-1", attempt: 2, ...status },
});
const origin = {
  kind: "restore",
  restoreId: "r-1",
  serviceId: "service-0",
  backupId: "b-1",
  targetTime: null,
  finishedAt: null,
} as const;
const service = runningService();
const log = { archiveId: "a-1", keyId: "k", keyVersion: 1, wrappedKey: "", since: 0 };

const stored = <T>(object: T) => ({ object, modRevision: 1n });

function allowed(
  scope: { case: "backupId" | "archiveId" | "restoreId"; value: string } | { case: undefined },
  use: readonly [method: string, key: string],
  over: {
    service?: ManagedServiceObject;
    backup?: BackupObject;
    machine?: MachineObject;
    drill?: DrillObject;
    index?: { get(id: string): Stored<BackupObject> };
  } = {},
): boolean {
  const machine = over.machine ?? runningMachine("node-1", { owner: { kind: "managed-service", id: "service-1" } });
  const archive = newArchive(service, 0, 0);
  const sources = createBackupObjectGrants({
    services: { get: () => stored(over.service ?? service) },
    archives: { get: () => stored({ ...archive, spec: { ...archive.spec, log } }) },
    liveArchive: () => undefined,
    index: over.index ?? { get: () => stored(over.backup ?? backup({})) },
    drillIndex: { get: () => over.drill },
  });
  const grants = grantsOf("node-1", scope, { machines: { get: () => stored(machine) }, sources });
  const [method, key] = use;
  const request = create(MintObjectUrlsRequestSchema, { scope, uses: [{ method, key }] });
  return firstUncovered(grants, request.uses) === undefined;
}

const backs = { case: "backupId", value: "b-1" } as const;
const archives = { case: "archiveId", value: "a-1" } as const;
const restores = { case: "restoreId", value: "r-1" } as const;
const part = "services/service-1/backups/b-1/2/base.tar/000001";
const other = "services/service-2/backups/b-1/2/base.tar/000001";
const restoring = runningService({}, { origin });

test("an increment may read its base, and a restore the whole chain", () => {
  const base = { ...backup({ state: "completed" }), metadata: { ...made.metadata, id: "b-0" } };
  const increment = { ...backup({}), spec: { ...made.spec, baseId: "b-0" } };
  const index = { get: (id: string) => stored(id === "b-0" ? base : increment) };
  const before = part.replace("/b-1/", "/b-0/");
  expect(allowed(backs, ["GET", before], { index })).toBe(true);
  expect(allowed(backs, ["PUT", before], { index })).toBe(false);
  expect(allowed(backs, ["PUT", part], { index })).toBe(true);
  const read = before.replace("/service-1/", "/service-0/");
  expect(allowed(restores, ["GET", read], { index, service: restoring })).toBe(true);
  expect(allowed(restores, ["PUT", read], { index, service: restoring })).toBe(false);
  expect(allowed(backs, ["GET", before])).toBe(false);
});

test.each([
  ["writes its current attempt", backs, ["PUT", part], {}, true],
  ["writes no other attempt", backs, ["PUT", part.replace("/2/", "/1/")], {}, false],
  ["reads earlier attempts", backs, ["HEAD", part.replace("/2/", "/1/")], {}, true],
  ["reads no later attempt", backs, ["HEAD", part.replace("/2/", "/3/")], {}, false],
  ["writes nothing of another service", backs, ["PUT", other], {}, false],
  ["deletes nothing", backs, ["DELETE", part], {}, false],
  ["writes nothing of a backup that has ended", backs, ["PUT", part], { backup: backup({ state: "failed" }) }, false],
  ["writes nothing of another machine's backup", backs, ["PUT", part], { backup: backup({ machineId: "x" }) }, false],
  [
    "writes nothing of a former owner",
    backs,
    ["PUT", part],
    { machine: runningMachine("node-1", { owner: null }) },
    false,
  ],
  ["writes the log of its term", archives, ["PUT", "services/service-1/log/0000000001/000000000001"], {}, true],
  ["writes no log of another term", archives, ["PUT", "services/service-1/log/0000000002/000000000001"], {}, false],
  ["reads the log of earlier terms", archives, ["GET", "services/service-1/log/0000000000/000000000001"], {}, true],
  ["reads no log of another service", archives, ["GET", "services/service-2/log/0000000001/000000000001"], {}, false],
  [
    "writes no log of another archive",
    { ...archives, value: "a-0" },
    ["PUT", "services/service-1/log/0000000001/1"],
    {},
    false,
  ],
  [
    "reads what it is restored from",
    restores,
    ["GET", "services/service-0/backups/b-1/2/manifest"],
    { service: restoring },
    true,
  ],
  [
    "writes nothing of its source",
    restores,
    ["PUT", "services/service-0/backups/b-1/2/manifest"],
    { service: restoring },
    false,
  ],
  [
    "reads its source no longer after the restore",
    restores,
    ["GET", "services/service-0/backups/b-1/2/manifest"],
    { service: runningService({}, { origin: { ...origin, finishedAt: 1 } }) },
    false,
  ],
  ["has no grants without a purpose", { case: undefined }, ["GET", part], {}, false],
] as const)("a machine %s", (_, scope, use, over, expected) => {
  expect(allowed(scope, use, over)).toBe(expected);
});

test("a drill's machine may read the source of its current restore only", () => {
  const machine = runningMachine("node-1", { owner: { kind: "drill", id: "d-1" } });
  const restores = [{ restoreId: "r-1", backupId: "b-1", targetTime: null }];
  const { source } = newArchive(service, 0, 0).spec;
  const waiting = newDrillObject(
    "d-1",
    "org",
    { serviceId: "service-1", trigger: "request", operationId: "o", source, restores },
    0,
  );
  const drill: DrillObject = { ...waiting, status: { ...waiting.status, state: "running", machineId: "node-1" } };
  const may = (use: readonly [string, string], change: Partial<DrillObject["status"]> = {}, restoreId = "r-1") =>
    allowed({ case: "restoreId", value: restoreId }, use, {
      machine,
      drill: { ...drill, status: { ...drill.status, ...change } },
    });
  expect(may(["GET", part])).toBe(true);
  expect(may(["PUT", part])).toBe(false);
  expect(may(["GET", other])).toBe(false);
  expect(may(["GET", part], {}, "r-2")).toBe(false);
  expect(may(["GET", part], { machineId: "node-2" })).toBe(false);
  expect(may(["GET", part], { state: "failed" })).toBe(false);
  expect(allowed(archives, ["PUT", part], { machine, drill })).toBe(false);
});
