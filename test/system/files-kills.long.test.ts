import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFiles, type FilesFixture } from "./files/files-service.ts";
import type { KeyJson } from "./files/key.ts";
import { startWriters } from "./files/object-writers.ts";

const skip = await requireRecipes(import.meta.filename, "files");
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;
const kills = 20;
const killsMs = 600_000;

describe.skipIf(skip !== undefined)(`a files service whose processes are killed ${kills} times`, () => {
  let image: TestImage;
  let platform: Platform;
  let media: FilesFixture;
  let key: KeyJson;

  beforeAll(async () => {
    const built = await testImage("files");
    if (typeof built === "string") throw new Error(built);
    image = built;
  }, imageMs);
  beforeAll(async () => {
    platform = await startPlatform();
    media = await createFiles(platform, image, "media");
    key = await media.createKey("shop");
    await media.accepted(key);
  });
  afterAll(async () => {
    media?.remove();
    await platform?.remove();
  });

  it(
    "loses no acknowledged object and mixes no versions, also when agent and controller are killed with it",
    async () => {
      const client = media.sdkClient(key);
      const writers = startWriters({ client, bucket: media.bucket });
      try {
        for (let kill = 0; kill < kills; kill += 1) {
          const before = writers.count;
          await waitUntil("objects are written", () => writers.count > before + 20);
          if (kill % 5 === 4) {
            const { controllers, machines } = platform.processes();
            for (const pid of [...controllers, machines[0]?.agent]) if (pid !== undefined) killImmediately(pid);
          }
          await media.killServers();
        }
        const { count } = writers;
        await waitUntil("objects are written again", () => writers.count > count);
      } finally {
        await writers.stop();
      }
      expect(await writers.faults()).toEqual([]);
      client.destroy();
      await waitUntil("the API responds", () =>
        media.get().then(
          () => true,
          () => false,
        ),
      );
      await media.settled("Running");
    },
    killsMs,
  );
});
