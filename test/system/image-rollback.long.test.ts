import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { cloneRefusal } from "@holdfast/compute/local/disk-snapshots.ts";
import { writeRows, writeValues } from "../faults/acknowledged-writer.ts";
import { createChangingImages, type ChangingImages } from "@holdfast/testing/machines/changing-images.ts";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { cloneTierMissing, openCloneTier, type CloneTier } from "@holdfast/testing/machines/clone-tier.ts";
import {
  createMaintenanceRequests,
  type MaintenanceRequests,
} from "@holdfast/testing/machines/maintenance-requests.ts";
import { startPlatform, type Platform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const longMs = 180_000;
/** SQLSTATE of a connection that the engine's allow-list rejects. */
const refusedByAllowList = "28000";
const missing = await cloneTierMissing();

/** Three services over images of which one damages data: two with snapshots of their disks, one without. */
describe.skipIf(missing !== undefined)(
  `data that an update damaged${missing === undefined ? "" : `: ${missing}`}`,
  () => {
    let tier: CloneTier;
    let images: ChangingImages;
    let platform: Platform;
    let services: Services;
    let requests: MaintenanceRequests;
    let plainTier: RunningService;
    let cache: RunningService;
    let plain: RunningService;

    beforeAll(async () => {
      tier = await openCloneTier();
      images = createChangingImages({ looksOlder: false });
      const environment = {
        HOLDFAST_CACHE: images.cache,
        HOLDFAST_STORAGE_TIERS: `maxiops=${tier.directory},standard`,
      };
      platform = await startPlatform({ environment });
      services = createServices(platform);
      requests = createMaintenanceRequests(platform, services);
      [plainTier, cache, plain] = await Promise.all([
        services.createRunning("kept"),
        services.createRunning("cache", { database_type: "valkey" }),
        services.createRunning("plain", { storage_tier: "standard" }),
      ]);
    }, longMs);
    afterAll(async () => {
      await platform?.remove();
      images?.close();
      await tier?.close();
    }, longMs);

    const snapshots = async () => (await tier.disks()).filter((name) => name.includes("snapshot"));

    /** Resolves with the update, once the image is pending. */
    async function pending(of: RunningService, image: string) {
      await images.choose(image);
      const { updates } = await requests.pending(of.service.id, image);
      return updates.find(({ id }) => id === image);
    }
    const apply = async ({ service }: RunningService) => expectStatus(await requests.apply(service.id), 202).json.id;
    async function refuses({ connection, password }: RunningService): Promise<boolean> {
      try {
        await (await openPostgresql(platform, connection, { password })).end();
        return false;
      } catch (error) {
        return (error as { code?: string }).code === refusedByAllowList;
      }
    }
    const ended = ({ service }: RunningService, id: string) => requests.ended(service.id, id);

    it(
      "rolls data and image back without an acknowledged loss; no client connects during the canary",
      async () => {
        const stop = new AbortController();
        const rows = await writeRows(platform, plainTier, stop.signal);
        const values = writeValues(platform, cache, stop.signal);
        await waitUntil("both accept writes", () => rows.acknowledged > 3 && values.acknowledged > 3);
        for (const service of [plainTier, cache])
          expect(await pending(service, images.damaging)).toMatchObject({ no_snapshot_reason: null });
        const [ofPlainTier, ofCache] = [await apply(plainTier), await apply(cache)];
        await waitUntil("a running engine rejects connections", () => refuses(plainTier), {
          withinMs: longMs,
          everyMs: 50,
        });
        for (const [one, id] of [[plainTier, ofPlainTier] as const, [cache, ofCache] as const]) {
          const { error, snapshot } = await ended(one, id);
          expect(error).toMatchObject({ code: "rolled_back_engine_failed" });
          expect(error?.message).toContain("with all its data as they were before");
          expect(snapshot).toEqual({ state: "restored", reason: null });
          await services.settled(one.service.id, "Running");
        }
        stop.abort();
        await Promise.all([rows.done, values.done]);
        expect(await rows.missing()).toEqual([]);
        expect(await values.missing()).toEqual([]);
        await waitUntil("no snapshot remains", async () => (await snapshots()).length === 0);
      },
      longMs,
    );

    it(
      "is announced where there can be no snapshot; an unneeded snapshot is deleted",
      async () => {
        const update = await pending(plain, images.valid);
        const refusal = await cloneRefusal(platform.directory);
        expect(update?.no_snapshot_reason).toBe(refusal ?? null);
        const [ofPlain, ofPlainTier] = [await apply(plain), await apply(plainTier)];
        const snapshot = refusal === undefined ? { state: "taken", reason: null } : { state: "none", reason: refusal };
        expect(await ended(plain, ofPlain)).toMatchObject({ status: "completed", snapshot });
        expect(await ended(plainTier, ofPlainTier)).toMatchObject({
          status: "completed",
          snapshot: { state: "taken", reason: null },
        });
        await waitUntil("no snapshot remains", async () => (await snapshots()).length === 0);
      },
      longMs,
    );

    it(
      "is deleted with its snapshot when the service is deleted midway",
      async () => {
        await pending(cache, images.valid);
        await apply(cache);
        const snapshot = await waitUntil("its data have a snapshot", async () => (await snapshots())[0], {
          everyMs: 5,
        });
        const [disk = ""] = snapshot.split(".snapshot-");
        expect(await tier.disks()).toContain(disk);
        // Otherwise its disk would be retained for undelete.
        const path = `/managed-services/${cache.service.id}?skip_final_backup=true`;
        expectStatus(await platform.rest.delete(path), 202);
        await services.deleted(cache.service.id);
        expect((await tier.disks()).filter((name) => name.startsWith(disk))).toEqual([]);
      },
      longMs,
    );
  },
);
