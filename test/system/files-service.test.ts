import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  paginateListObjectsV2,
  type S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { detectAbilities } from "@holdfast/compute/local/host-abilities.ts";
import type { PageJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AttachmentJson, attachedKey } from "./files/attachment.ts";
import { createFiles, type FilesConnectionJson, type FilesFixture } from "./files/files-service.ts";
import type { KeyJson } from "./files/key.ts";
import { startWriters } from "./files/object-writers.ts";

// One platform with one files service: each test continues from the state of the one before. Projects, further clients
// and many kills are in the long lane.

const skip = await requireRecipes(import.meta.filename, "files");
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;

describe.skipIf(skip !== undefined)("a files service", () => {
  let image: TestImage;
  let platform: Platform;
  let media: FilesFixture;
  let writer: KeyJson;
  let reader: KeyJson;
  let client: S3Client;

  beforeAll(async () => {
    const built = await testImage("files");
    if (typeof built === "string") throw new Error(built);
    image = built;
  }, imageMs);
  beforeAll(async () => {
    platform = await startPlatform();
    media = await createFiles(platform, image, "media");
    writer = await media.createKey("shop");
    client = media.sdkClient(writer);
  });
  afterAll(async () => {
    client?.destroy();
    media?.remove();
    await platform?.remove();
  });

  const refused = (key: KeyJson) =>
    waitUntil(
      "the key is refused",
      async () => (await media.run<{ get: string }>(key, "access")).get === "InvalidAccessKeyId 403",
    );

  it("has an endpoint with one bucket, and the key that was created", async () => {
    const { json } = expectStatus(await platform.rest.get<FilesConnectionJson>(media.path("/connection")), 200);
    const { isolation } = await detectAbilities();
    const [port, suffix] = isolation === "root" ? [443, ""] : [9000, ":9000"];
    expect(json).toMatchObject({ endpoint: `https://${json.host}${suffix}`, port, region: "us-east-1" });
    expect(json.bucket).toBe(json.host.split(".")[0]);
    expect(writer).toMatchObject({ name: "shop", access: "readwrite" });
    const page = expectStatus(await platform.rest.get<PageJson<"keys", KeyJson>>(media.path("/keys")), 200);
    expect(page.json.keys.map(({ name }) => name)).toEqual(["shop"]);
    expect(page.text).not.toContain(writer.secret_access_key);
    const again = await platform.rest.post<ProblemJson>(media.path("/keys"), { name: "shop" });
    expect(expectStatus(again, 409).json.code).toBe("name_taken");
    expectStatus(await platform.rest.post(media.path("/keys"), { name: "x", access: "admin" }), 400);
  });

  it("stores objects of boto3, by name over TLS", async () => {
    expect(await media.accepted(writer)).toEqual({
      body: "hello",
      type: "text/plain",
      metadata: { by: "boto3" },
      range: "el",
      buckets: [media.bucket],
    });
    expect(await media.run(writer, "uploads")).toEqual({
      same: true,
      checked: expect.any(String),
      twice: "PreconditionFailed 412",
      presigned: "sum",
      unsigned: 403,
      deleted: "404 404",
      cors: ["https://shop.example"],
    });
  });

  it("stores objects of the AWS SDK for JavaScript, with the bucket in the host name", async () => {
    const object = { Bucket: media.bucket, Key: "sdk/one ü.txt" };
    await client.send(new PutObjectCommand({ ...object, Body: "hello", Metadata: { by: "sdk" } }));
    const found = await client.send(new GetObjectCommand(object));
    expect([await found.Body?.transformToString(), found.Metadata]).toEqual(["hello", { by: "sdk" }]);
    const list = await client.send(new ListObjectsV2Command({ Bucket: media.bucket, Prefix: "sdk/" }));
    expect(list.Contents?.map(({ Key }) => Key)).toEqual([object.Key]);
    const again = client.send(new PutObjectCommand({ ...object, Body: "other", IfNoneMatch: "*" }));
    await expect(again).rejects.toMatchObject({ name: "PreconditionFailed" });
    const { UploadId } = await client.send(
      new CreateMultipartUploadCommand({ ...object, Key: "sdk/parts", ChecksumAlgorithm: "CRC32" }),
    );
    const part = { ...object, Key: "sdk/parts", UploadId, PartNumber: 1 };
    const { ETag, ChecksumCRC32 } = await client.send(new UploadPartCommand({ ...part, Body: "a part" }));
    const MultipartUpload = { Parts: [{ ETag, ChecksumCRC32, PartNumber: 1 }] };
    await client.send(new CompleteMultipartUploadCommand({ ...object, Key: "sdk/parts", UploadId, MultipartUpload }));
    await expect(client.send(new DeleteBucketCommand({ Bucket: media.bucket }))).rejects.toMatchObject({
      name: "AccessDenied",
    });
    for (const Key of [object.Key, "sdk/parts"]) await client.send(new DeleteObjectCommand({ ...object, Key }));
    await expect(client.send(new HeadObjectCommand(object))).rejects.toMatchObject({ name: "NotFound" });
  });

  it("lists and deletes 1,100 keys, in pages", async () => {
    const Bucket = media.bucket;
    const keys = Array.from({ length: 1_100 }, (_, number) => `many/${String(number).padStart(4, "0")}`);
    const list = async () => {
      const pages = await Array.fromAsync(paginateListObjectsV2({ client }, { Bucket, Prefix: "many/" }));
      return pages.map(({ Contents = [] }) => Contents.map(({ Key }) => Key));
    };
    const remaining = keys.values();
    const put = async () => {
      for (const Key of remaining) await client.send(new PutObjectCommand({ Bucket, Key, Body: "x" }));
    };
    await Promise.all(Array.from({ length: 16 }, put));
    const pages = await list();
    expect(pages.map(({ length }) => length)).toEqual([1_000, 100]);
    expect(pages.flat()).toEqual(keys);
    for (const some of [keys.slice(0, 1_000), keys.slice(1_000)]) {
      const Delete = { Objects: some.map((Key) => ({ Key })), Quiet: true };
      await client.send(new DeleteObjectsCommand({ Bucket, Delete }));
    }
    expect((await list()).flat()).toEqual([]);
  });

  it("lets a key with the access readonly only read, and a bucket be neither added nor deleted", async () => {
    reader = await media.createKey("site", "readonly");
    const denied = "AccessDenied 403";
    const may = { get: "", list: "", buckets: [media.bucket], presigned: 200 };
    const mayNot = { "other bucket": denied, "bucket's end": denied, put: denied, delete: denied, upload: denied };
    const expected = { ...may, ...mayNot, policy: denied };
    await waitUntil("the key is accepted", async () => (await media.run<{ get: string }>(reader, "access")).get === "");
    expect(await media.run(reader, "access")).toEqual(expected);
  });

  it("refuses a revoked key", async () => {
    expectStatus(await platform.rest.delete(media.path(`/keys/${reader.id}`)), 204);
    await refused(reader);
    expectStatus(await platform.rest.delete(media.path(`/keys/${reader.id}`)), 404);
  });

  it("is no database, and databases are no files services", async () => {
    const { id } = await media.get();
    expectStatus(await platform.rest.get(`/managed-services/${id}`), 404);
    expectStatus(await platform.rest.get(`/managed-services/${id}/database-users`), 404);
    const { json } = await platform.rest.get<PageJson<"services", ServiceJson>>("/managed-services");
    expect(json.services).toEqual([]);
    const listed = await platform.rest.get<PageJson<"services", ServiceJson>>("/files-services");
    expect(listed.json.services.map((service) => service.id)).toEqual([id]);
    const database = { name: "x", database_type: "files", plan_name: "tier-1", storage_size_gb: 1 };
    expectStatus(await platform.rest.post("/managed-services", database), 400);
  });

  it("has health and operations below its own paths", async () => {
    const health = await platform.rest.get<{ status: string }>(media.path("/health"));
    expect(expectStatus(health, 200).json.status).toBe("healthy");
    const listed = await platform.rest.get<PageJson<"operations", { type: string }>>(media.path("/operations"));
    expect(expectStatus(listed, 200).json.operations.map(({ type }) => type)).toEqual(["create"]);
  });

  it("loses no acknowledged object when its servers are killed during writes", async () => {
    const writers = startWriters({ client, bucket: media.bucket });
    try {
      await waitUntil("each object was written", () => writers.count > 80);
      await media.killServers();
      const { count } = writers;
      await waitUntil("objects are written again", () => writers.count > count);
    } finally {
      await writers.stop();
    }
    expect(await writers.faults()).toEqual([]);
  });

  it("is attached to an app by a separate key, and cannot be deleted until it is detached", async () => {
    const app = expectStatus(await platform.rest.post<{ id: string }>("/app-services", { name: "shop" }), 201).json.id;
    const { id } = await media.get();
    const path = `/app-services/${app}/attachments`;
    const attachment = expectStatus(await platform.rest.post<AttachmentJson>(path, { service_id: id }), 201).json;
    expect(attachment).toMatchObject({ kind: "files", database_name: "" });
    const key = attachedKey(attachment);
    await media.accepted(key);
    expectStatus(await platform.rest.post(path, { service_id: id }), 409);
    expect((await platform.rest.get(`/app-services/${app}`)).text).not.toContain(key.secret_access_key);

    const refusal = expectStatus(await platform.rest.delete<ProblemJson>(media.path()), 409).json;
    expect(refusal).toMatchObject({ code: "attachment_in_use" });
    expect(refusal.detail).toContain(`attached to app shop. Detach it first (attachment ${attachment.id})`);
    expectStatus(await platform.rest.delete(`${path}/${attachment.id}`), 204);
    await refused(key);
  });

  it("is protected from deletion, deleted and undeleted with its objects and keys", async () => {
    expectStatus(await platform.rest.patch(media.path(), { deletion_protection: true }), 200);
    expectStatus(await platform.rest.delete(media.path()), 409);
    expectStatus(await platform.rest.patch(media.path(), { deletion_protection: false }), 200);
    expectStatus(await platform.rest.delete(media.path()), 202);
    await waitUntil("it is deleted", async () => (await platform.rest.get(media.path())).status === 404);
    expectStatus(await platform.rest.post(media.path("/undelete")), 202);
    await media.settled("Running");
    expect(await media.run(writer, "access")).toMatchObject({ get: "" });
  });
});
