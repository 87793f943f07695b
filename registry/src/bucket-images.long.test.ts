import { createHash, randomBytes } from "node:crypto";
import { chownSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { silentLog } from "@holdfast/common/log.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { AwsV4Signer } from "aws4fetch";
import { readS3Location } from "@holdfast/egress/s3/s3-location.ts";
import { createS3Store } from "@holdfast/egress/s3/s3-store.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { asRoot, programDirectory, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { s3Programs } from "@holdfast/testing/servers/s3-program.ts";
import { type S3Server, startS3Server } from "@holdfast/testing/servers/s3-server.ts";
import { startTestRegistry, type TestRegistry } from "@holdfast/testing/servers/test-registry.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type BucketProxy, startBucketProxy } from "./bucket-proxy.ts";

// Two registries with their images in one bucket of a real S3 server.

const skipped = asRoot
  ? await requireRecipes(import.meta.filename, "apps", "trixie")
  : "needs root: another user for the program";
const servers = await s3Programs();
const users = { developer: { namespace: "o-1", actions: ["pull", "push", "delete"] } };
const mib = 1 << 20;

describe.skipIf(skipped !== undefined).each(servers)("images in a bucket of $title", (program) => {
  let server: S3Server;
  let directory: string;
  let objects: ObjectStore;
  let registries: TestRegistry[];
  const settings = () => ({
    objects: server.url("some/prefix"),
    objectsKeyFile: server.keyFile,
    objectsCa: server.caFile,
    objectsEncryption: "none",
  });
  const start = (name: string) => startTestRegistry({ directory, name, objects: settings(), users });

  beforeAll(async () => {
    if (program.path === undefined) return;
    directory = programDirectory("holdfast-registry");
    chownSync(directory, testUid, testUid);
    server = await startS3Server(program);
    objects = createS3Store(await readS3Location(new URL(server.url("some/prefix")), settings()), Date.now);
    registries = await Promise.all(["first", "second"].map(start));
  }, 120_000);
  afterAll(async () => {
    await Promise.all(registries?.map((each) => each.stop()) ?? []);
    await server?.remove();
    if (directory !== undefined) await rm(directory, { recursive: true, force: true });
  });

  const it = test.skipIf(program.path === undefined);
  const digestOf = (bytes: Buffer | string) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

  /** The registry of this number, from 0 on, with the token of a caller that asks another one for it. */
  const at = (number: number) => registries[number % 2] as TestRegistry;
  const bearer = (number: number) => at(number + 1).bearer("developer", "repository:o-1/shop:pull,push,delete");

  /** Uploads a layer in parts, each to another registry than the part before. */
  async function upload(bytes: Buffer, partBytes: number): Promise<string> {
    const digest = digestOf(bytes);
    let number = 0;
    let { status, location } = await at(0).call("POST", "/v2/o-1/shop/blobs/uploads/", await bearer(0));
    expect(status).toBe(202);
    for (let from = 0; from < bytes.length; from += partBytes) {
      number += 1;
      const part = bytes.subarray(from, from + partBytes);
      const headers = { ...(await bearer(number)), "content-type": "application/octet-stream" };
      ({ status, location } = await at(number).call("PATCH", location, headers, part));
      expect(status).toBe(202);
    }
    number += 1;
    const path = `${location}${location.includes("?") ? "&" : "?"}digest=${digest}`;
    const ended = await at(number).call("PUT", path, await bearer(number));
    expect(ended.status, ended.text).toBe(201);
    return digest;
  }

  async function push(tag: string, layer: Buffer, partBytes = layer.length): Promise<string> {
    const config = Buffer.from("{}");
    const [configDigest, layerDigest] = [await upload(config, config.length), await upload(layer, partBytes)];
    const type = "application/vnd.oci.image.manifest.v1+json";
    const manifest = JSON.stringify({
      schemaVersion: 2,
      mediaType: type,
      config: { mediaType: "application/vnd.oci.image.config.v1+json", digest: configDigest, size: config.length },
      layers: [{ mediaType: "application/vnd.oci.image.layer.v1.tar", digest: layerDigest, size: layer.length }],
    });
    const headers = { ...(await bearer(0)), "content-type": type };
    const { status, text } = await at(0).call("PUT", `/v2/o-1/shop/manifests/${tag}`, headers, manifest);
    expect(status, text).toBe(201);
    return layerDigest;
  }

  const pulled = async (number: number, tag: string) => {
    const accept = "application/vnd.oci.image.manifest.v1+json";
    return at(number).call("GET", `/v2/o-1/shop/manifests/${tag}`, { ...(await bearer(number)), accept });
  };

  it("an upload that passes between registries is one image, which each of them serves", async () => {
    const layer = randomBytes(25 * mib);
    const digest = await push("1", layer, 7 * mib);
    for (const number of [0, 1]) {
      expect((await pulled(number, "1")).text).toContain(digest);
      const { status } = await at(number).call("HEAD", `/v2/o-1/shop/blobs/${digest}`, await bearer(number));
      expect(status).toBe(200);
    }
    const hex = digest.slice(7);
    const key = `registry/docker/registry/v2/blobs/sha256/${hex.slice(0, 2)}/${hex}/data`;
    expect(await objects.head(key)).toMatchObject({ sizeBytes: layer.length });
    const parts: Buffer[] = [];
    for await (const part of (await objects.get(key)) ?? []) parts.push(part);
    expect(digestOf(Buffer.concat(parts))).toBe(digest);
    expect(registries.flatMap(({ failures }) => failures)).toEqual([]);
  }, 120_000);

  it("an image is deleted by its digest, and a tag is replaced", async () => {
    const first = await push("next", randomBytes(1_000));
    const second = await push("next", randomBytes(1_000));
    const { text } = await pulled(1, "next");
    expect(text).toContain(second);
    expect(text).not.toContain(first);
    const path = `/v2/o-1/shop/manifests/${digestOf(text)}`;
    expect((await at(1).call("DELETE", path, await bearer(1))).status).toBe(202);
    expect((await pulled(0, "next")).status).toBe(404);
  }, 60_000);

  it("docker-registry has a credential that reads and deletes nothing else in the bucket", async () => {
    const backup = "services/s-1/backup";
    await objects.put(backup, (async function* () {})());
    const location = await readS3Location(new URL(server.url("some/prefix")), settings());
    const proxy: BucketProxy = await startBucketProxy({
      location,
      prefix: "some/prefix/registry/",
      now: Date.now,
      log: silentLog,
    });
    const call = async (method: string, path: string, headers: Record<string, string> = {}, body?: string) => {
      const signer = new AwsV4Signer({
        method,
        url: `${proxy.endpoint}${path}`,
        headers,
        ...(body !== undefined && { body }),
        accessKeyId: proxy.key.id,
        secretAccessKey: proxy.key.secret,
        service: "s3",
        region: "us-east-1",
      });
      const { url, headers: signed } = await signer.sign();
      return (await fetch(url, { method, headers: signed, ...(body !== undefined && { body }) })).status;
    };
    const deletion = (...keys: string[]) =>
      `<Delete>${keys.map((key) => `<Object><Key>${key}</Key></Object>`).join("")}</Delete>`;
    const [own, other] = ["some/prefix/registry/x", `some/prefix/${backup}`];
    try {
      expect(await call("PUT", `/backups/${own}`, {}, "x")).toBe(200);
      expect(await call("GET", `/backups/${own}`)).toBe(200);
      expect(await call("GET", "/backups?list-type=2&prefix=some/prefix/registry/")).toBe(200);
      const refused = [
        call("GET", `/backups/${other}`),
        call("DELETE", `/backups/${other}`),
        call("PUT", `/backups/${other}`, {}, "x"),
        call("GET", "/backups/some/prefix/registry/%2e%2e/services/s-1/backup"),
        call("GET", "/backups/some/prefix/registry/..%2fservices/s-1/backup"),
        call("PUT", `/backups/${own}`, { "x-amz-copy-source": `backups/${other}` }),
        call("PUT", `/backups/${own}`, { "x-amz-copy-source": "backups/some/prefix/registry/../services/s-1/backup" }),
        call("GET", "/backups?list-type=2&prefix=some/prefix/"),
        call("GET", "/backups?list-type=2"),
        call("GET", "/"),
        call("DELETE", "/backups"),
        call("POST", "/backups?delete=", {}, deletion(own, other)),
        call("POST", "/backups?delete=", {}, `${deletion(own)}<aws:Key >${other}</aws:Key >`),
        call("PUT", "/backups?policy=", {}, "{}"),
      ];
      expect(await Promise.all(refused)).toEqual(refused.map(() => 403));
      const unsigned = await fetch(`${proxy.endpoint}/backups/${own}`);
      expect(unsigned.status).toBe(403);
      expect(await objects.head(backup)).toBeDefined();
    } finally {
      await proxy.close();
    }
  }, 60_000);

  it("images that nothing needs are deleted while no registry is in use, and a push during the deletion loses nothing", async () => {
    let now = Date.now();
    const sweeper = await startTestRegistry({ directory, name: "sweeper", objects: settings(), users, now: () => now });
    const keyOf = (digest: string) =>
      `registry/docker/registry/v2/blobs/sha256/${digest.slice(7, 9)}/${digest.slice(7)}/data`;
    const isStored = async (digest: string) => (await objects.head(keyOf(digest))) !== undefined;
    /** Sweeps once no registry is in use: the requests of the others have ended. */
    const sweepAlone = async () => {
      for (const each of registries) await each.sweep();
      return sweeper.sweep();
    };
    try {
      const old = await push("replaced", randomBytes(3_000));
      const first = await push("replaced", randomBytes(3_000));
      now += 25 * 3_600_000;
      expect(await sweeper.sweep()).toBe(false);
      expect(await isStored(old)).toBe(true);
      expect(await sweepAlone()).toBe(true);
      now += 25 * 3_600_000;
      expect(await sweepAlone()).toBe(true);
      expect([await isStored(old), await isStored(first)]).toEqual([false, true]);
      expect((await pulled(0, "replaced")).text).toContain(first);

      const pushed: string[] = [];
      let ended = 0;
      for (let round = 0; round < 6; round += 1) {
        for (const each of registries) await each.sweep();
        now += 25 * 3_600_000;
        const sweeping = sweeper.sweep();
        pushed.push(await push(`round-${round}`, randomBytes(200_000), 50_000));
        pushed.push(await push("replaced", randomBytes(3_000)));
        if (!(await sweeping)) ended += 1;
        expect((await pulled(1, `round-${round}`)).text).toContain(pushed.at(-2));
        expect(await isStored(pushed.at(-2) ?? "")).toBe(true);
      }
      expect(ended, "sweeps that ended for a push").toBeGreaterThan(0);
      await sweepAlone();
      now += 25 * 3_600_000;
      expect(await sweepAlone()).toBe(true);
      const retained = await Promise.all(pushed.map(isStored));
      // Of the images that replaced each other, the last one has the tag.
      expect(retained).toEqual(pushed.map((_, index) => index % 2 === 0 || index === pushed.length - 1));
      expect([...registries, sweeper].flatMap(({ failures }) => failures)).toEqual([]);
    } finally {
      await sweeper.stop();
    }
  }, 300_000);

  it("images on the disk of the registry, where earlier releases have them, are moved into the bucket", async () => {
    const digest = await push("moved", randomBytes(2_000));
    await Promise.all(registries.map((each) => each.stop()));
    const before = join(directory, "first", "images");
    // All that the bucket has goes to the disk,.
    for (let more = true; more; ) {
      const page = await objects.list("registry/", { limit: 1_000 });
      for (const { key } of page.objects) {
        const path = join(before, key.slice("registry/".length));
        await mkdir(dirname(path), { recursive: true });
        const parts: Buffer[] = [];
        for await (const part of (await objects.get(key)) ?? []) parts.push(part);
        await writeFile(path, Buffer.concat(parts));
        await objects.delete(key);
      }
      more = page.more;
    }
    const upload = join(before, "docker/registry/v2/repositories/o-1/shop/_uploads/u-1");
    await mkdir(upload, { recursive: true });
    await writeFile(join(upload, "data"), "unfinished");
    registries = await Promise.all(["first", "second"].map(start));
    expect((await pulled(0, "moved")).text).toContain(digest);
    expect((await pulled(1, "moved")).text).toContain(digest);
    await expect(readFile(join(before, "docker"))).rejects.toThrow(/ENOENT/);
    const { objects: uploads } = await objects.list("registry/docker/registry/v2/repositories/o-1/shop/_uploads/", {
      limit: 1,
    });
    expect(uploads).toEqual([]);
  }, 120_000);

  it("requests fail while the store is away, and succeed afterwards", async () => {
    await server.kill();
    expect((await pulled(0, "moved")).status).toBeGreaterThanOrEqual(500);
    await server.start();
    expect((await pulled(0, "moved")).status).toBe(200);
  }, 120_000);
});
