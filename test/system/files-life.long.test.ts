import type { PageJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { GiveUp, waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AttachmentJson } from "./files/attachment.ts";
import { createFiles, type FilesFixture } from "./files/files-service.ts";
import type { KeyJson } from "./files/key.ts";

// One platform with a files service and a project with another: each test continues from the state of the one before.

const skip = await requireRecipes(import.meta.filename, "files");
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;

describe.skipIf(skip !== undefined)("files services of projects and apps", () => {
  let image: TestImage;
  let platform: Platform;
  let media: FilesFixture;
  let app: string;
  let attachments: readonly AttachmentJson[];

  beforeAll(async () => {
    const built = await testImage("files");
    if (typeof built === "string") throw new Error(built);
    image = built;
  }, imageMs);
  beforeAll(async () => {
    platform = await startPlatform();
    media = await createFiles(platform, image, "media");
  });
  afterAll(async () => {
    media?.remove();
    await platform?.remove();
  });

  const ofProject = async () => {
    const { json } = await platform.rest.get<PageJson<"services", ServiceJson>>("/files-services?name=shop-assets");
    return json.services[0];
  };
  const projectIs = (status: string) =>
    waitUntil(`the project is ${status}`, async () => {
      const { json } = await platform.rest.get<{ status: string; detail: string }>("/projects/shop");
      if (json.status === "Failed") throw new GiveUp(JSON.stringify(json));
      return json.status === status;
    });
  const keysOf = async (id: string) =>
    (await platform.rest.get<PageJson<"keys", KeyJson>>(`/files-services/${id}/keys`)).json.keys;

  it("are resources of a project, whose later specs are recorded and not applied", async () => {
    const deploy = (spec: object) => {
      const descriptor = { name: "shop", resources: [{ logical_name: "assets", kind: "files", spec }] };
      return platform.rest.post("/projects/deploy", { descriptor });
    };
    expectStatus(await deploy({ database_type: "files" }), 400);
    expectStatus(await deploy({ storage_gb: 1 }), 202);
    await projectIs("Running");
    expectStatus(await deploy({ storage_gb: 2, plan: "tier-2" }), 202);
    await projectIs("Running");
    expect(await ofProject()).toMatchObject({ plan_name: "tier-1", storage_size_gb: 1, operation: null });
    const drift = await platform.rest.get("/projects/shop/drift");
    expect(expectStatus(drift, 200).text).toContain('"path":"plan_name"');
  });

  it("have variables with the prefix of their names when an app has several", async () => {
    app = expectStatus(await platform.rest.post<{ id: string }>("/app-services", { name: "shop" }), 201).json.id;
    const attach = async (body: object) =>
      expectStatus(await platform.rest.post<AttachmentJson>(`/app-services/${app}/attachments`, body), 201).json;
    const alone = await attach({ service_id: (await media.get()).id });
    expect(alone.variables.map(({ name }) => name)).toEqual(["S3_ENDPOINT", "S3_BUCKET", "S3_ACCESS_KEY", "S3_SECRET"]);
    const assets = (await ofProject())?.id ?? "";
    const both = await attach({ service_id: assets, access: "readonly" });
    expect(both.variables.map(({ name }) => name)).toEqual(
      ["MEDIA", "SHOP_ASSETS"].flatMap((prefix) =>
        ["ENDPOINT", "BUCKET", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"].map((name) => `${prefix}_S3_${name}`),
      ),
    );
    expect((await keysOf(assets)).map(({ access }) => access)).toEqual(["readonly"]);
    attachments = [alone, both];
  });

  it("cannot be deleted while they are attached, neither alone nor with their project", async () => {
    const ofMedia = expectStatus(await platform.rest.delete<ProblemJson>(media.path()), 409).json;
    expect(ofMedia.code).toBe("attachment_in_use");
    const project = expectStatus(await platform.rest.delete<ProblemJson>("/projects/shop"), 409).json;
    expect(project.code).toBe("attachment_in_use");
    expect(project.detail).toContain(`assets: The service is attached to app shop.`);
    expect((await ofProject())?.status).toBe("Running");
  });

  it("lose the keys of an app that is deleted, and can be deleted then", async () => {
    const assets = (await ofProject())?.id ?? "";
    expectStatus(await platform.rest.delete(`/app-services/${app}`), 204);
    const ended = new Set(attachments.map(({ access_key_id: id }) => id));
    const keys = [...(await keysOf(assets)), ...(await keysOf((await media.get()).id))];
    expect(keys.filter(({ access_key_id: id }) => ended.has(id))).toEqual([]);
    expectStatus(await platform.rest.delete("/projects/shop"), 202);
    await projectIs("Deleted");
    expect(await ofProject()).toBeUndefined();
    expectStatus(await platform.rest.delete(media.path()), 202);
    await waitUntil("it is deleted", async () => (await platform.rest.get(media.path())).status === 404);
  });
});
