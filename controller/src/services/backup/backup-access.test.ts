import { expect, test } from "vitest";
import { testCall } from "@holdfast/testing/api/test-call.ts";
import { requestedBackup } from "@holdfast/testing/controller/requested-backup.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import { newArchive } from "./archive/archive.ts";
import { createBackupAccess } from "./backup-access.ts";
import { newBackupObject } from "./backup.ts";

const service = runningService({ organizationId: "o" });
const serviceId = service.metadata.id;
const stored = <T>(object: T) => ({ object, modRevision: 1n });

test.each([
  ["a manual backup", "manual", true],
  ["an automated backup, whose deletion has yet to begin", "automated", false],
] as const)("a deleted service that has %s", (_, backupType, isFound) => {
  const backup = newBackupObject("b-1", "o", { ...requestedBackup, backupType }, 0);
  const access = createBackupAccess({
    access: { find: () => undefined },
    archives: { get: () => stored(newArchive(service, 0, 0)) },
    index: { of: () => [stored(backup)], get: () => stored(backup) },
  });
  const found = () => access.owner(serviceId, testCall());
  if (isFound) expect(found().archive?.object.metadata.id).toBe(serviceId);
  else expect(found).toThrow("There is no such service");
});
