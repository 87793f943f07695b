import { rm } from "node:fs/promises";
import type { App } from "@holdfast/sdk/index.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createHostedApps, type HostedApps, pushAppImage } from "@holdfast/testing/platform/hosted-apps.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot, programDirectory } from "@holdfast/testing/platform/platform-software.ts";
import { createServices, expectStatus, type Services } from "@holdfast/testing/platform/services.ts";
import { type AppImages, createAppImages } from "@holdfast/testing/servers/app-images.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

// Each engine attached to a hosted app, whose program connects by its variables alone, with the usual client.

const skipped = asRoot
  ? await requireRecipes(import.meta.filename, "apps", "mysql", "kafka", "mongodb", "tsql")
  : "needs root: containers of a machine";

/** Services of each engine, as the request for a new one has them. */
const engines = [
  ["valkey", {}],
  ["mysql", {}],
  ["mongodb", {}],
  ["tsql", {}],
  ["kafka", { plan_name: "tier-2", storage_size_gb: 2 }],
] as const;

describe.skipIf(skipped !== undefined)("an engine attached to a hosted app", { timeout: 600_000 }, () => {
  let platform: Platform;
  let directory: string;
  let services: Services;
  let apps: HostedApps;
  let app: App;

  beforeAll(async () => {
    directory = programDirectory("holdfast-push");
    let images: AppImages;
    [platform, images] = await Promise.all([startPlatform(), createAppImages(directory, { hasClients: true })]);
    services = createServices(platform);
    apps = createHostedApps(platform);
    await pushAppImage(platform, images, { name: "shop", tag: "1" });
    app = await apps.createRunning("shop", { image_ref: "shop:1" });
  }, 600_000);
  afterAll(async () => {
    await platform?.remove();
    await rm(directory, { recursive: true, force: true });
  });

  test.each(engines)(
    "%s: the program writes and reads by its variables, until it is detached",
    async (engine, body) => {
      const service = await services.create(`my-${engine}`, { database_type: engine, allowed_cidrs: [], ...body });
      await services.settled(service.id, "Running", 400_000);
      const { id, username } = await apps.attach(app.id, service.id);
      expect(username).toMatch(/^app_/);
      const client = `cd /app && node --no-warnings clients.mjs ${engine} MY_${engine.toUpperCase()}`;
      expect(await apps.run(app.hosted?.url ?? "", client)).toBe("0 written\n");

      expectStatus(await platform.rest.delete(`/app-services/${app.id}/attachments/${id}`), 204);
      expect(await apps.ended(await apps.get(app.id))).toMatchObject({ status: "completed" });
      expect(await apps.run(app.hosted?.url ?? "", `echo $DATABASE_URL$MY_${engine.toUpperCase()}_PASSWORD`)).toBe(
        "0 \n",
      );
      await services.delete(service.id);
    },
  );
});
