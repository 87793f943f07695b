import { backupPrefix } from "@holdfast/common/backup/object-names.ts";
import { expect } from "vitest";
import type { OperationJson, ServiceJson } from "../support/api/service-json.ts";
import { expectStatus } from "../support/platform/services.ts";
import { namesBelow, objectsOf, openStoredBackup } from "../support/platform/stored-backups.ts";
import { waitUntil } from "../support/wait-until.ts";
import { type BackupJson, type BackupKillGround, type BackupVictim, keptRows } from "./backup-kill-ground.ts";

/** All that happens around backups, and what is true in the end though one of its parts was killed in the middle. */
export const backupKillSteps = { backup, restore, archive, expiry, rotation } as const;
export type BackupKillStep = keyof typeof backupKillSteps;

const primaryOf = ({ source }: BackupKillGround) => source.service.nodes[0]?.id ?? "";

async function completed(ground: BackupKillGround, operationId: string): Promise<void> {
  const status = async () => (await ground.read<OperationJson>(`/operations/${operationId}`))?.status;
  await waitUntil("its operation has ended", async () => (await status()) === "completed", ground.wait);
}

/** It is completed, and of all attempts nothing is left but what it is made of. */
async function backup(ground: BackupKillGround, victim: BackupVictim): Promise<void> {
  const { platform, source, wait } = ground;
  const { id } = await ground.backup();
  const prefix = backupPrefix(source.service.id, id);
  const objects = objectsOf(platform);
  const stored = async () => (await namesBelow(objects, `${prefix}1/`)).length;
  // Of seventeen parts ten are of the table alone: some of these are among them.
  await waitUntil("half of it is stored", async () => (await stored()) > 8, { ...wait, everyMs: 5 });
  // What is stored of it from here on waits, and so does whoever reads the engine: a kill comes in the middle.
  const resume = ground.pauseStore();
  await ground.kill(victim, primaryOf(ground));
  if (victim === "engine") await waitUntil("nobody reads the engine", () => !ground.isBeingRead(), wait);
  resume();
  const ended = await ground.ended(id);
  expect(ended).toMatchObject({ status: "completed", error_message: null });
  await completed(ground, ended.operation_id);
  const reader = await openStoredBackup(platform, source.service.id, id);
  await reader.verify("all");
  const belongs = (name: string) => name === `${prefix}key` || reader.objects.has(name);
  const strangers = async () => (await namesBelow(objects, prefix)).filter((name) => !belongs(name));
  await waitUntil("nothing but the backup is left", async () => (await strangers()).length === 0, wait);
  // All but what was under way, and what changed, was taken over.
  const takenOver = [...reader.objects].filter((name) => name.startsWith(`${prefix}1/`));
  const isSecond = [...reader.objects].some((name) => name.startsWith(`${prefix}2/`));
  if (victim === "component" || victim === "engine")
    expect({ isSecond, takenOver }).not.toMatchObject({ isSecond: false });
  if (isSecond) expect(takenOver.length).toBeGreaterThan(0);
}

/** The copy runs, has every row, and is the only one. */
async function restore(ground: BackupKillGround, victim: BackupVictim): Promise<void> {
  const { platform, services, wait } = ground;
  const { backups } = expectStatus(
    await platform.rest.get<{ backups: BackupJson[] }>(ground.path("?status=completed")),
    200,
  ).json;
  const target_service_name = `from-${victim}`;
  const path = ground.path(`/${backups[0]?.id}/restore`);
  const copy = expectStatus(await platform.rest.post<ServiceJson>(path, { target_service_name }), 202).json;
  const machineId = await waitUntil(
    "its data are being restored",
    async () => {
      const found = await ground.read<ServiceJson>(`/managed-services/${copy.id}`);
      return found?.operation?.step === "ProvisioningRestore" ? found.nodes[0]?.id : undefined;
    },
    { ...wait, everyMs: 5, describe: () => services.describe(copy.id) },
  );
  await ground.kill(victim, machineId);
  const isRunning = async () => {
    const found = await ground.read<ServiceJson>(`/managed-services/${copy.id}`);
    expect(found?.status, JSON.stringify(found)).not.toBe("Error");
    return found?.status === "Running" && found.operation === null;
  };
  await waitUntil("the copy runs", isRunning, { ...wait, describe: () => services.describe(copy.id) });
  const rows = await ground.ask(await services.open(copy.id), "SELECT count(*)::int AS count FROM kept");
  expect(rows).toEqual([{ count: keptRows }]);
  expectStatus(await platform.rest.delete(`/managed-services/${copy.id}?skip_final_backup=true`), 202);
  await services.gone(copy.id);
}

/** Every row that was acknowledged is in a copy at the newest moment. */
async function archive(ground: BackupKillGround, victim: BackupVictim): Promise<void> {
  const { platform, services, source, wait } = ground;
  const acknowledged: number[] = [];
  const write = async (count: number) => {
    const [last] = await ground.ask<{ i: number }>(source, "SELECT coalesce(max(i), 0)::int AS i FROM entries");
    for (let i = (last?.i ?? 0) + 1, end = i + count; i < end; i += 1) {
      await ground.ask(source, `INSERT INTO entries VALUES (${i}) ON CONFLICT DO NOTHING`);
      acknowledged.push(i);
    }
  };
  await write(20);
  await ground.kill(victim, primaryOf(ground));
  await waitUntil(
    "rows are taken again",
    () =>
      write(20).then(
        () => true,
        () => false,
      ),
    wait,
  );
  await ground.durable();
  const restorable = await waitUntil(
    "the newest moment is told",
    async () =>
      (await ground.read<ServiceJson>(`/managed-services/${source.service.id}`))?.backups?.restorable ?? undefined,
    wait,
  );
  const asked = { restore_point: restorable.to, target_service_name: `newest-${victim}` };
  const copy = await ground.post<ServiceJson>(ground.path("/restore"), asked, [202]);
  await services.settled(copy.id, "Running", wait.withinMs);
  const rows = await ground.ask<{ i: number }>(await services.open(copy.id), "SELECT i FROM entries");
  const there = new Set(rows.map(({ i }) => i));
  expect(acknowledged.filter((i) => !there.has(i))).toEqual([]);
  expectStatus(await platform.rest.delete(`/managed-services/${copy.id}?skip_final_backup=true`), 202);
  await services.gone(copy.id);
}

/** Nothing is left of a backup that ended its life, and nothing is missing of those that did not. */
async function expiry(ground: BackupKillGround, victim: BackupVictim): Promise<void> {
  const { platform, source, wait } = ground;
  const [going, staying] = [await ground.backup(), await ground.backup()];
  for (const { id } of [going, staying]) expect(await ground.ended(id)).toMatchObject({ status: "completed" });
  const deletion = platform.rest.delete(ground.path(`/${going.id}`)).catch(() => undefined);
  await ground.kill(victim, primaryOf(ground));
  await deletion;
  const isGone = async () => {
    // Whoever took the request may have been killed before.
    const answer = await platform.rest.delete(ground.path(`/${going.id}`)).catch(() => undefined);
    return answer?.status === 404;
  };
  await waitUntil("it is gone for users", isGone, wait);
  const left = () => namesBelow(objectsOf(platform), backupPrefix(source.service.id, going.id));
  await waitUntil("nothing of it is stored", async () => (await left()).length === 0, wait);
  await (await openStoredBackup(platform, source.service.id, staying.id)).verify("all");
}

/** What was made before the rotation opens, and what is made after it is sealed under the new key. */
async function rotation(ground: BackupKillGround, victim: BackupVictim): Promise<void> {
  const { platform, source, wait } = ground;
  const before = await ground.ended((await ground.backup()).id);
  const asked = platform.rest.post(ground.path("/rotate-key")).catch(() => undefined);
  await ground.kill(victim, primaryOf(ground));
  await asked;
  await ground.post(ground.path("/rotate-key"), {}, [202]);
  await ground.durable();
  await ground.services.settled(source.service.id, "Running", wait.withinMs);
  const after = await ground.ended((await ground.post<BackupJson>(ground.path(), {}, [202])).id);
  expect(after).toMatchObject({ status: "completed" });
  expect(after.key_version).toBeGreaterThan(before.key_version);
  for (const { id } of [before, after]) {
    await ground.post(ground.path(`/${id}/verify`), {}, [202]);
    const read = async () => (await ground.read<BackupJson>(ground.path(`/${id}`)))?.verified_at ?? null;
    await waitUntil("every byte of it was opened", async () => (await read()) !== null, wait);
  }
}
