import { GetObjectCommand } from "@aws-sdk/client-s3";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { asOtherUser } from "@holdfast/testing/platform/other-user.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AttachmentJson, attachedKey } from "./files/attachment.ts";
import { createFiles, type FilesConnectionJson, type FilesFixture } from "./files/files-service.ts";

const skip = await requireRecipes(import.meta.filename, "files");
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;

describe.skipIf(skip !== undefined)("a files service of a platform that does not run as root", () => {
  let image: TestImage;
  let platform: Platform;
  let media: FilesFixture;

  beforeAll(async () => {
    const built = await testImage("files");
    if (typeof built === "string") throw new Error(built);
    image = built;
  }, imageMs);
  beforeAll(async () => {
    platform = await startPlatform(asOtherUser());
    media = await createFiles(platform, image, "media");
  });
  afterAll(async () => {
    media?.remove();
    await platform?.remove();
  });

  it("listens on port 9000, which all its addresses name", async () => {
    const { json } = expectStatus(await platform.rest.get<FilesConnectionJson>(media.path("/connection")), 200);
    expect(json).toMatchObject({
      port: 9_000,
      endpoint: `https://${json.host}:9000`,
      bucket_endpoint: `https://${json.bucket}.${json.host}:9000`,
      private_endpoint: expect.stringMatching(/:9000$/),
    });
  });

  it("serves an app with the endpoint of its variables, with the bucket in the path and in the host name", async () => {
    const app = expectStatus(await platform.rest.post<{ id: string }>("/app-services", { name: "shop" }), 201).json.id;
    const request = { service_id: (await media.get()).id };
    const path = `/app-services/${app}/attachments`;
    const attachment = expectStatus(await platform.rest.post<AttachmentJson>(path, request), 201).json;
    expect(attachment.variables).toContainEqual({ name: "S3_ENDPOINT", value: media.connection.endpoint });
    const key = attachedKey(attachment);
    expect(await media.accepted(key)).toMatchObject({ body: "hello", buckets: [media.bucket] });
    const client = media.sdkClient(key);
    const found = await client.send(new GetObjectCommand({ Bucket: media.bucket, Key: "greetings/one.txt" }));
    expect(await found.Body?.transformToString()).toBe("hello");
    client.destroy();
  });
});
