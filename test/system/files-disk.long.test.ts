import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFiles, type FilesFixture } from "./files/files-service.ts";
import type { KeyJson } from "./files/key.ts";

// One files service whose disk is filled: each test continues from the state of the one before.

const skip = await requireRecipes(import.meta.filename, "files");
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;
/** A gibibyte is written to the object store. */
const fillMs = 600_000;

describe.skipIf(skip !== undefined)("a files service with a full disk", { timeout: fillMs }, () => {
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
  });
  afterAll(async () => {
    media?.remove();
    await platform?.remove();
  });

  const isAccepted = (scenario: string) =>
    media.run(key, scenario).then(
      () => true,
      () => undefined,
    );

  it("refuses writes with 507 and serves reads", async () => {
    await waitUntil("the key is accepted", () => isAccepted("first"));
    const filled = await media.run<{ refused: string; same: boolean; count: number }>(key, "full");
    expect(filled).toMatchObject({ refused: "InsufficientStorage 507", same: true });
    // Nearly all of the disk was written.
    expect(filled.count).toBeGreaterThan(80);
    await waitUntil("writes are blocked before they reach the server", async () => {
      const path = "/events?type=service.writes_blocked";
      return expectStatus(await platform.rest.get<{ events: unknown[] }>(path), 200).json.events.length > 0;
    });
  });

  it("accepts writes again after an expansion", async () => {
    expectStatus(await platform.rest.post(media.path("/storage/expand"), { storage_size_gb: 2 }), 202);
    await media.settled("Running");
    await waitUntil("an object is written", () => isAccepted("first"));
  });

  it("accepts deletions on a full disk, and writes after them", async () => {
    expect(await media.run(key, "full")).toMatchObject({ refused: "InsufficientStorage 507", same: true });
    expect(await media.run<{ deleted: number }>(key, "emptied")).toMatchObject({ deleted: expect.any(Number) });
    await waitUntil("an object is written", () => isAccepted("first"));
  });
});
