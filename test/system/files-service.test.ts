import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteBucketCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { detectAbilities } from "@holdfast/compute/local/host-abilities.ts";
import type { PageJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type TestImage, testImage } from "@holdfast/testing/engines/test-image.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { GiveUp, waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFiles, type FilesConnectionJson, type FilesFixture, type KeyJson } from "./files/files-service.ts";

interface AttachmentJson {
  readonly id: string;
  readonly kind: string;
  readonly database_name: string;
  readonly access_key_id: string;
  readonly variables: readonly { readonly name: string; readonly value: string }[];
}

// One platform with one files service: each test continues from the state of the one before.

const skip = await requireRecipes(import.meta.filename, "files");
/** The first run builds an image with the clients, which takes minutes on a busy machine. */
const imageMs = 600_000;

describe.skipIf(skip !== undefined)("a files service", () => {
  let image: TestImage;
  let platform: Platform;
  let media: FilesFixture;
  let writer: KeyJson;
  let reader: KeyJson;

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

  const keyWorks = (key: KeyJson) =>
    waitUntil(
      "the key is accepted",
      () =>
        media.run(key, "first").then(
          () => true,
          () => undefined,
        ),
      { withinMs: 30_000 },
    );

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

  it("has an endpoint with one bucket, and no key at first", async () => {
    const { json } = expectStatus(await platform.rest.get<FilesConnectionJson>(media.path("/connection")), 200);
    const { isolation } = await detectAbilities();
    const [port, suffix] = isolation === "root" ? [443, ""] : [9000, ":9000"];
    expect(json).toMatchObject({ endpoint: `https://${json.host}${suffix}`, port, region: "us-east-1" });
    expect(json.bucket).toBe(json.host.split(".")[0]);
    const { keys } = expectStatus(await platform.rest.get<PageJson<"keys", KeyJson>>(media.path("/keys")), 200).json;
    expect(keys).toEqual([]);
  });

  it("stores objects of boto3, by name over TLS", async () => {
    writer = await media.createKey("shop");
    expect(writer).toMatchObject({ name: "shop", access: "readwrite" });
    await keyWorks(writer);
    const { bucket } = (await platform.rest.get<FilesConnectionJson>(media.path("/connection"))).json;
    expect(await media.run(writer, "first")).toEqual({
      body: "hello",
      type: "text/plain",
      metadata: { by: "boto3" },
      range: "el",
      buckets: [bucket],
    });
  });

  it("stores objects of the AWS SDK for JavaScript, with the bucket in the host name", async () => {
    const client = media.sdkClient(writer);
    const object = { Bucket: media.bucket, Key: "sdk/one ü.txt" };
    try {
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
    } finally {
      client.destroy();
    }
  });

  it("lists and deletes 1,100 keys, in pages", async () => {
    expect(await media.run(writer, "keys")).toEqual({ pages: 2, same: true, left: 0 });
  });

  it("has uploads in parts, checksums, conditional writes, presigned URLs and CORS", async () => {
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

  it("lets a key with the access readonly only read, and a bucket be neither added nor deleted", async () => {
    reader = await media.createKey("site", "readonly");
    const denied = "AccessDenied 403";
    const may = { get: "", list: "", buckets: "", presigned: 200, "other bucket": denied, "bucket's end": denied };
    const expected = { ...may, put: denied, delete: denied, upload: denied, policy: denied };
    await waitUntil("the key is accepted", async () => (await media.run<{ get: string }>(reader, "access")).get === "");
    expect(await media.run(reader, "access")).toEqual(expected);
  });

  it("shows a secret only once, and refuses a second key of the same name", async () => {
    const page = await platform.rest.get<PageJson<"keys", KeyJson>>(media.path("/keys"));
    expect(page.json.keys.map(({ name }) => name).toSorted()).toEqual(["shop", "site"]);
    expect(page.text).not.toContain(writer.secret_access_key);
    const again = await platform.rest.post<ProblemJson>(media.path("/keys"), { name: "shop" });
    expect(expectStatus(again, 409).json.code).toBe("name_taken");
    expectStatus(await platform.rest.post(media.path("/keys"), { name: "x", access: "admin" }), 400);
  });

  it("refuses a revoked key", async () => {
    expectStatus(await platform.rest.delete(media.path(`/keys/${reader.id}`)), 204);
    await waitUntil(
      "the key is refused",
      async () => (await media.run<{ get: string }>(reader, "access")).get === "InvalidAccessKeyId 403",
    );
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

  it("has health and metrics below its own paths", async () => {
    const health = await platform.rest.get<{ status: string }>(media.path("/health"));
    expect(expectStatus(health, 200).json.status).toBe("healthy");
    const names = ["connections", "files_requests_per_sec", "files_objects", "files_bytes"];
    const query = names.map((name) => `metric=${name}`).join("&");
    await waitUntil("samples of all metrics", async () => {
      const answer = await platform.rest.get<{ series: { metric: string; points: unknown[] }[] }>(
        media.path(`/metrics?${query}&period=15m`),
      );
      const measured = expectStatus(answer, 200).json.series.filter(({ points }) => points.length > 0);
      return names.every((name) => measured.some(({ metric }) => metric === name));
    });
  });

  it("loses no acknowledged object when its servers are killed", async () => {
    const child = media.start(writer, "stream");
    const lines = createInterface({ input: child.stdout ?? process.stdin });
    const acknowledged: string[] = [];
    lines.on("line", (line) => {
      if (line.startsWith("stream/")) acknowledged.push(line);
    });
    const ended = once(lines, "close");
    for (let kills = 0; kills < 3; kills += 1) {
      const count = acknowledged.length;
      await waitUntil("the client writes", () => acknowledged.length > count);
      const before = media.servers();
      expect(before.length).toBe(2);
      for (const pid of before) killImmediately(pid);
      await waitUntil("both servers run again", () => {
        const now = media.servers();
        return now.length === 2 && now.every((pid) => !before.includes(pid));
      });
    }
    await media.settled("Running");
    child.stdin?.end();
    await ended;
    expect(await media.run<string[]>(writer, "streamed")).toEqual(expect.arrayContaining(acknowledged));
  });

  it("is a resource of a project, whose later specs are recorded and not applied", async () => {
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

  it("is attached to an app by a separate key, with the variables of one and of several files services", async () => {
    const app = expectStatus(await platform.rest.post<{ id: string }>("/app-services", { name: "shop" }), 201).json.id;
    const path = (more = "") => `/app-services/${app}${more}`;
    const attach = async (body: object) =>
      expectStatus(await platform.rest.post<AttachmentJson>(path("/attachments"), body), 201).json;
    const keysOf = async (id: string) =>
      (await platform.rest.get<PageJson<"keys", KeyJson>>(`/files-services/${id}/keys`)).json.keys;
    const { id } = await media.get();
    const alone = await attach({ service_id: id });
    const variables = new Map(alone.variables.map(({ name, value }) => [name, value]));
    expect([...variables.keys()]).toEqual(["S3_ENDPOINT", "S3_BUCKET", "S3_ACCESS_KEY", "S3_SECRET"]);
    expect(alone).toMatchObject({ kind: "files", database_name: "", access_key_id: variables.get("S3_ACCESS_KEY") });
    const key = { ...writer, access_key_id: alone.access_key_id, secret_access_key: variables.get("S3_SECRET") ?? "" };
    await keyWorks(key);
    expectStatus(await platform.rest.post(path("/attachments"), { service_id: id }), 409);

    const assets = (await ofProject())?.id ?? "";
    const both = await attach({ service_id: assets, access: "readonly" });
    expect(both.variables.map(({ name }) => name)).toEqual(
      ["MEDIA", "SHOP_ASSETS"].flatMap((prefix) =>
        ["ENDPOINT", "BUCKET", "ACCESS_KEY_ID", "SECRET_ACCESS_KEY"].map((name) => `${prefix}_S3_${name}`),
      ),
    );
    expect((await keysOf(assets)).map(({ access }) => access)).toEqual(["readonly"]);
    expect((await platform.rest.get(path())).text).not.toContain(key.secret_access_key);
    expectStatus(await platform.rest.delete(path(`/attachments/${alone.id}`)), 204);
    await waitUntil(
      "the key is refused",
      async () => (await media.run<{ get: string }>(key, "access")).get === "InvalidAccessKeyId 403",
    );
    expectStatus(await platform.rest.delete(path()), 204);
    expect(await keysOf(assets)).toEqual([]);
  });

  it("is deleted with its project", async () => {
    expectStatus(await platform.rest.delete("/projects/shop"), 202);
    await projectIs("Deleted");
    expect(await ofProject()).toBeUndefined();
  });

  it("is stopped, started, protected from deletion, deleted and undeleted with its objects and keys", async () => {
    expectStatus(await platform.rest.post(media.path("/stop")), 202);
    await media.settled("Stopped");
    expectStatus(await platform.rest.post(media.path("/start")), 202);
    await media.settled("Running");
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
