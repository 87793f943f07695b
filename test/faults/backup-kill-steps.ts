import { backupPrefix } from "@holdfast/common/backup/object-names.ts";
import { expect } from "vitest";
import type { OperationJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { namesBelow, objectsOf, openStoredBackup } from "@holdfast/testing/platform/stored-backups.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type BackupJson, type BackupKillFixture, type BackupVictim, initialRows } from "./backup-kill-fixture.ts";

/** All procedures around backups, with the expected result when one of their parts is killed midway. */
export const backupKillSteps = { backup, restore, archive, expiry, rotation } as const;
export type BackupKillStep = keyof typeof backupKillSteps;

const primaryOf = ({ source }: BackupKillFixture) => source.service.nodes[0]?.id ?? "";

async function completed(fixture: BackupKillFixture, operationId: string): Promise<void> {
  const status = async () => (await fixture.read<OperationJson>(`/operations/${operationId}`))?.status;
  await waitUntil("its operation has ended", async () => (await status()) === "completed", fixture.wait);
}

/** Expects a backup to complete, and only the objects of its last attempt to remain. */
async function backup(fixture: BackupKillFixture, victim: BackupVictim): Promise<void> {
  const { platform, source, wait } = fixture;
  const { id } = await fixture.backup();
  const prefix = backupPrefix(source.service.id, id);
  const objects = objectsOf(platform);
  const stored = async () => (await namesBelow(objects, `${prefix}1/`)).length;
  // Ten of seventeen parts contain only the table: some of these are among them.
  await waitUntil("half of it is stored", async () => (await stored()) > 8, { ...wait, everyMs: 5 });
  // Later parts wait, and so does the reader of the engine, so that the kill is in the middle of the backup.
  const resume = fixture.pauseStore();
  await fixture.kill(victim, primaryOf(fixture));
  if (victim === "engine") await waitUntil("the backup stopped reading", () => !fixture.isBeingRead(), wait);
  resume();
  const ended = await fixture.ended(id);
  expect(ended).toMatchObject({ status: "completed", error_message: null });
  await completed(fixture, ended.operation_id);
  const reader = await openStoredBackup(platform, source.service.id, id);
  await reader.verify("all");
  const belongs = (name: string) => name === `${prefix}key` || reader.objects.has(name);
  const otherObjects = async () => (await namesBelow(objects, prefix)).filter((name) => !belongs(name));
  await waitUntil("only the backup remains", async () => (await otherObjects()).length === 0, wait);
  // All objects are reused except those in progress and those that changed.
  const takenOver = [...reader.objects].filter((name) => name.startsWith(`${prefix}1/`));
  const isSecond = [...reader.objects].some((name) => name.startsWith(`${prefix}2/`));
  if (victim === "component" || victim === "engine")
    expect({ isSecond, takenOver }).not.toMatchObject({ isSecond: false });
  if (isSecond) expect(takenOver.length).toBeGreaterThan(0);
}

/** Expects one restored service, which runs and has every row. */
async function restore(fixture: BackupKillFixture, victim: BackupVictim): Promise<void> {
  const { platform, services, wait } = fixture;
  const { backups } = expectStatus(
    await platform.rest.get<{ backups: BackupJson[] }>(fixture.path("?status=completed")),
    200,
  ).json;
  const target_service_name = `from-${victim}`;
  const path = fixture.path(`/${backups[0]?.id}/restore`);
  const copy = expectStatus(await platform.rest.post<ServiceJson>(path, { target_service_name }), 202).json;
  const machineId = await waitUntil(
    "its data are being restored",
    async () => {
      const found = await fixture.read<ServiceJson>(`/managed-services/${copy.id}`);
      return found?.operation?.step === "ProvisioningRestore" ? found.nodes[0]?.id : undefined;
    },
    { ...wait, everyMs: 5, describe: () => services.describe(copy.id) },
  );
  await fixture.kill(victim, machineId);
  const isRunning = async () => {
    const found = await fixture.read<ServiceJson>(`/managed-services/${copy.id}`);
    expect(found?.status, JSON.stringify(found)).not.toBe("Error");
    return found?.status === "Running" && found.operation === null;
  };
  await waitUntil("the copy runs", isRunning, { ...wait, describe: () => services.describe(copy.id) });
  const rows = await fixture.query(await services.open(copy.id), "SELECT count(*)::int AS count FROM kept");
  expect(rows).toEqual([{ count: initialRows }]);
  expectStatus(await platform.rest.delete(`/managed-services/${copy.id}?skip_final_backup=true`), 202);
  await services.deleted(copy.id);
}

/** Expects every acknowledged row in a copy of the newest restorable time. */
async function archive(fixture: BackupKillFixture, victim: BackupVictim): Promise<void> {
  const { platform, services, source, wait } = fixture;
  const acknowledged: number[] = [];
  const write = async (count: number) => {
    const [last] = await fixture.query<{ i: number }>(source, "SELECT coalesce(max(i), 0)::int AS i FROM entries");
    for (let i = (last?.i ?? 0) + 1, end = i + count; i < end; i += 1) {
      await fixture.query(source, `INSERT INTO entries VALUES (${i}) ON CONFLICT DO NOTHING`);
      acknowledged.push(i);
    }
  };
  await write(20);
  await fixture.kill(victim, primaryOf(fixture));
  await waitUntil(
    "rows are taken again",
    () =>
      write(20).then(
        () => true,
        () => false,
      ),
    wait,
  );
  await fixture.durable();
  const restorable = await waitUntil(
    "the newest moment is reported",
    async () =>
      (await fixture.read<ServiceJson>(`/managed-services/${source.service.id}`))?.backups?.restorable ?? undefined,
    wait,
  );
  const body = { restore_point: restorable.to, target_service_name: `newest-${victim}` };
  const copy = await fixture.post<ServiceJson>(fixture.path("/restore"), body, [202]);
  await services.settled(copy.id, "Running", wait.withinMs);
  const rows = await fixture.query<{ i: number }>(await services.open(copy.id), "SELECT i FROM entries");
  const restoredRows = new Set(rows.map(({ i }) => i));
  expect(acknowledged.filter((i) => !restoredRows.has(i))).toEqual([]);
  expectStatus(await platform.rest.delete(`/managed-services/${copy.id}?skip_final_backup=true`), 202);
  await services.deleted(copy.id);
}

/** Expects an expired backup to be removed completely, and the others to remain complete. */
async function expiry(fixture: BackupKillFixture, victim: BackupVictim): Promise<void> {
  const { platform, source, wait } = fixture;
  const [deleted, staying] = [await fixture.backup(), await fixture.backup()];
  for (const { id } of [deleted, staying]) expect(await fixture.ended(id)).toMatchObject({ status: "completed" });
  const deletion = platform.rest.delete(fixture.path(`/${deleted.id}`)).catch(() => undefined);
  await fixture.kill(victim, primaryOf(fixture));
  await deletion;
  const isDeleted = async () => {
    // The controller that accepted the request may have been killed before.
    const response = await platform.rest.delete(fixture.path(`/${deleted.id}`)).catch(() => undefined);
    return response?.status === 404;
  };
  await waitUntil("users do not see it any more", isDeleted, wait);
  const remaining = () => namesBelow(objectsOf(platform), backupPrefix(source.service.id, deleted.id));
  await waitUntil("nothing of it is stored", async () => (await remaining()).length === 0, wait);
  await (await openStoredBackup(platform, source.service.id, staying.id)).verify("all");
}

/** Expects a backup from before a key rotation to open, and a backup from after it to use the new key. */
async function rotation(fixture: BackupKillFixture, victim: BackupVictim): Promise<void> {
  const { platform, source, wait } = fixture;
  const before = await fixture.ended((await fixture.backup()).id);
  const rotating = platform.rest.post(fixture.path("/rotate-key")).catch(() => undefined);
  await fixture.kill(victim, primaryOf(fixture));
  await rotating;
  await fixture.post(fixture.path("/rotate-key"), {}, [202]);
  await fixture.durable();
  await fixture.services.settled(source.service.id, "Running", wait.withinMs);
  const after = await fixture.ended((await fixture.post<BackupJson>(fixture.path(), {}, [202])).id);
  expect(after).toMatchObject({ status: "completed" });
  expect(after.key_version).toBeGreaterThan(before.key_version);
  for (const { id } of [before, after]) {
    await fixture.post(fixture.path(`/${id}/verify`), {}, [202]);
    const read = async () => (await fixture.read<BackupJson>(fixture.path(`/${id}`)))?.verified_at ?? null;
    await waitUntil("every byte of it was opened", async () => (await read()) !== null, wait);
  }
}
