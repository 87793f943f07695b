import { randomBytes } from "node:crypto";
import { backupPrefix } from "@holdfast/common/backup/object-names.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { type ReadRecord, readTopic } from "@holdfast/testing/engines/kafka-ledger.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, expectStatus, type Services } from "@holdfast/testing/platform/services.ts";
import { namesBelow, objectsOf, openStoredBackup } from "@holdfast/testing/platform/stored-backups.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BackupKills, createBackupKills, longMs } from "../faults/backup-kill-fixture.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");
const victims = ["component", "agent", "engine", "controller"] as const;
const topic = "orders";

describe.skipIf(skip !== undefined)("backups of a Kafka whose processes are killed", { timeout: 2 * longMs }, () => {
  let platform: Platform;
  let services: Services;
  let kills: BackupKills;
  let before: readonly ReadRecord[];
  let backupId = "";

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const parameters = { "group.initial.rebalance.delay.ms": "0" };
    const { id } = await services.create("bus", { database_type: "kafka", parameters });
    await services.settled(id, "Running", longMs);
    kills = createBackupKills(platform, services, await services.open(id));
    before = await write();
  }, 2 * longMs);
  afterAll(() => platform?.remove(), longMs);

  /** 32 MB that cannot be compressed: several parts of a backup. */
  async function write(): Promise<readonly ReadRecord[]> {
    const kafka = serviceKafka(platform, kills.source);
    const admin = kafka.admin();
    await admin.connect();
    await admin.createTopics({ topics: [{ topic, numPartitions: 2 }], waitForLeaders: true });
    await admin.disconnect();
    const producer = kafka.producer();
    await producer.connect();
    for (let index = 0; index < 64; index += 1) {
      const value = randomBytes(375_000).toString("base64");
      await producer.send({ topic, acks: -1, messages: [{ partition: index % 2, key: String(index), value }] });
    }
    await producer.disconnect();
    return readTopic(kafka, topic);
  }

  it.each(victims)("a backup completes although the %s is killed, and only its objects remain", async (victim) => {
    const { source, wait } = kills;
    const { id } = await kills.backup();
    const prefix = backupPrefix(source.service.id, id);
    const objects = objectsOf(platform);
    const stored = async () => (await namesBelow(objects, `${prefix}1/`)).length;
    await waitUntil("a part of it is stored", async () => (await stored()) > 1, { ...wait, everyMs: 5 });
    // Later parts wait, so that the kill is in the middle of the backup.
    const resume = kills.pauseStore();
    try {
      await kills.kill(victim, source.service.nodes[0]?.id ?? "");
    } finally {
      resume();
    }
    expect(await kills.ended(id)).toMatchObject({ status: "completed", error_message: null });
    const reader = await openStoredBackup(platform, source.service.id, id);
    await reader.verify("all");
    const belongs = (name: string) => name === `${prefix}key` || reader.objects.has(name);
    const others = async () => (await namesBelow(objects, prefix)).filter((name) => !belongs(name));
    await waitUntil("only the backup remains", async () => (await others()).length === 0, wait);
    await kills.expectNothingLeft();
    backupId = id;
  });

  it.each(victims)("a restore has all records although the %s is killed", async (victim) => {
    const { wait } = kills;
    const body = { target_service_name: `from-${victim}` };
    const copy = await kills.post<ServiceJson>(kills.path(`/${backupId}/restore`), body, [202]);
    const machineId = await waitUntil(
      "its data are being restored",
      async () => {
        const found = await kills.read<ServiceJson>(`/managed-services/${copy.id}`);
        return found?.operation?.step === "ProvisioningRestore" ? found.nodes[0]?.id : undefined;
      },
      { ...wait, everyMs: 5, describe: () => services.describe(copy.id) },
    );
    await kills.kill(victim, machineId);
    const isRunning = async () => {
      const found = await kills.read<ServiceJson>(`/managed-services/${copy.id}`);
      expect(found?.status, JSON.stringify(found)).not.toBe("Error");
      return found?.status === "Running" && found.operation === null;
    };
    await waitUntil("the copy runs", isRunning, { ...wait, describe: () => services.describe(copy.id) });
    const records = await readTopic(serviceKafka(platform, await services.open(copy.id)), topic);
    // Compared without the values first, of which a difference would print megabytes.
    const shortened = (all: readonly ReadRecord[]) => all.map(({ value, ...rest }) => [rest, value?.length]);
    expect(shortened(records)).toEqual(shortened(before));
    expect(records.every(({ value }, index) => value === before[index]?.value)).toBe(true);
    expectStatus(await platform.rest.delete(`/managed-services/${copy.id}?skip_final_backup=true`), 202);
    await services.deleted(copy.id);
    await kills.expectNothingLeft();
  });
});
