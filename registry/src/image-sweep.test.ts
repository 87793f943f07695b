import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { asRoot, programDirectory } from "@holdfast/testing/platform/platform-software.ts";
import { startTestRegistry, type TestRegistry } from "@holdfast/testing/servers/test-registry.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { graceMs } from "./image-sweep.ts";

// The real docker-registry; only the controller's answer about deployments is a set.

const skipped = asRoot
  ? await requireRecipes(import.meta.filename, "apps")
  : "needs root: another user for the program";
const users = { developer: { namespace: "o-1", actions: ["pull", "push", "delete"] } };
const imageType = "application/vnd.oci.image.manifest.v1+json";
const indexType = "application/vnd.oci.image.index.v1+json";

interface Pushed {
  /** Digest of the manifest. */
  readonly digest: string;
  readonly layer: string;
  readonly size: number;
}

describe.skipIf(skipped !== undefined)("a sweep of images", () => {
  let directory: string;
  let registry: TestRegistry;
  let now = Date.now();
  const needed = new Set<string>();

  beforeAll(async () => {
    directory = programDirectory("holdfast-registry");
    const objects = {
      objects: pathToFileURL(join(directory, "objects")).href,
      objectsKeyFile: "",
      objectsCa: "",
      objectsEncryption: "none",
    };
    registry = await startTestRegistry({ directory, objects, users, needed, now: () => now });
  }, 120_000);
  afterAll(async () => {
    await registry?.stop();
    await rm(directory, { recursive: true, force: true });
  });
  beforeEach(() => needed.clear());

  const digestOf = (bytes: Buffer | string) => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  const hasBlob = (digest: string) => {
    const hex = digest.slice("sha256:".length);
    return existsSync(
      join(directory, "objects/registry/docker/registry/v2/blobs/sha256", hex.slice(0, 2), hex, "data"),
    );
  };
  const bearer = (repository: string) => registry.bearer("developer", `repository:o-1/${repository}:pull,push,delete`);
  const statusOf = async (repository: string, reference: string) => {
    const headers = { ...(await bearer(repository)), accept: `${imageType}, ${indexType}` };
    return (await registry.call("GET", `/v2/o-1/${repository}/manifests/${reference}`, headers)).status;
  };

  async function upload(repository: string, bytes: Buffer): Promise<string> {
    const authorization = await bearer(repository);
    const path = `/v2/o-1/${repository}/blobs/uploads/`;
    const { location } = await registry.call("POST", path, authorization);
    const digest = digestOf(bytes);
    const headers = { ...authorization, "content-type": "application/octet-stream" };
    const { status, text } = await registry.call("PUT", `${location}&digest=${digest}`, headers, bytes);
    expect(status, text).toBe(201);
    return digest;
  }

  async function putManifest(repository: string, reference: string, type: string, body: object): Promise<string> {
    const manifest = JSON.stringify(body);
    const headers = { ...(await bearer(repository)), "content-type": type };
    const path = `/v2/o-1/${repository}/manifests/${reference}`;
    const { status, text } = await registry.call("PUT", path, headers, manifest);
    expect(status, text).toBe(201);
    return digestOf(manifest);
  }

  async function push(repository: string, reference: string, layer = randomBytes(1_000)): Promise<Pushed> {
    const config = Buffer.from("{}");
    const [configDigest, layerDigest] = [await upload(repository, config), await upload(repository, layer)];
    const body = {
      schemaVersion: 2,
      mediaType: imageType,
      config: { mediaType: "application/vnd.oci.image.config.v1+json", digest: configDigest, size: config.length },
      layers: [{ mediaType: "application/vnd.oci.image.layer.v1.tar", digest: layerDigest, size: layer.length }],
    };
    const digest = await putManifest(repository, reference, imageType, body);
    return { digest, layer: layerDigest, size: JSON.stringify(body).length };
  }

  test("deletes an image that neither a tag nor a deployment has for a day, with its layers", async () => {
    const first = await push("web", "latest");
    const second = await push("web", "latest");
    const third = await push("web", "latest");
    needed.add(second.digest);
    await registry.sweep();
    now += graceMs - 1;
    await registry.sweep();
    expect(await statusOf("web", first.digest)).toBe(200);
    now += 1;
    await registry.sweep();
    expect(await statusOf("web", first.digest)).toBe(404);
    expect([first, second, third].map(({ layer }) => hasBlob(layer))).toEqual([false, true, true]);
    for (const reference of [second.digest, third.digest, "latest"]) expect(await statusOf("web", reference)).toBe(200);

    // The deployment is not retained any more.
    needed.clear();
    await registry.sweep();
    now += graceMs;
    await registry.sweep();
    expect([second, third].map(({ layer }) => hasBlob(layer))).toEqual([false, true]);
    expect(registry.failures).toEqual([]);
  }, 60_000);

  test("an image that is needed again in the meantime waits for another day", async () => {
    const layer = randomBytes(1_000);
    const first = await push("again", "latest", layer);
    await push("again", "latest");
    await registry.sweep();
    now += graceMs;
    expect(await push("again", "latest", layer)).toEqual(first);
    await registry.sweep();
    await push("again", "latest");
    await registry.sweep();
    expect(await statusOf("again", first.digest)).toBe(200);
    now += graceMs;
    await registry.sweep();
    expect(await statusOf("again", first.digest)).toBe(404);
  }, 60_000);

  test("the images of an index are needed as long as the index, and layers as long as another image has them", async () => {
    const layer = randomBytes(1_000);
    const image = await push("multi", "amd64", layer);
    await push("multi", "amd64");
    await push("other", "latest", layer);
    const manifests = [{ mediaType: imageType, digest: image.digest, size: image.size }];
    const body = { schemaVersion: 2, mediaType: indexType, manifests };
    const index = await putManifest("multi", "1", indexType, body);
    await registry.sweep();
    now += graceMs;
    await registry.sweep();
    expect(await statusOf("multi", image.digest)).toBe(200);

    await putManifest("multi", "1", indexType, { ...body, manifests: [] });
    await registry.sweep();
    now += graceMs;
    await registry.sweep();
    expect([await statusOf("multi", index), await statusOf("multi", image.digest)]).toEqual([404, 404]);
    expect(hasBlob(digestOf(layer))).toBe(true);
    expect(await statusOf("other", "latest")).toBe(200);
  }, 60_000);

  test("requests during a sweep end it, and lose nothing", async () => {
    const old = await push("busy", "latest");
    const current = await push("busy", "latest");
    await registry.sweep();
    now += graceMs;
    const pushes: Pushed[] = [];
    for (let round = 0; round < 10; round += 1) {
      const swept = registry.sweep();
      // Time: the moment of the requests, another part of the sweep in each round.
      const until = performance.now() + round * 15;
      while (performance.now() < until) await setImmediate();
      pushes.push(await push("busy", `t${round}`));
      await swept;
    }
    for (const { digest, layer } of [current, ...pushes]) {
      expect(await statusOf("busy", digest)).toBe(200);
      expect(hasBlob(layer)).toBe(true);
    }
    await registry.sweep();
    expect(await statusOf("busy", old.digest)).toBe(404);
    expect(hasBlob(old.layer)).toBe(false);
    expect(registry.failures).toEqual([]);
  }, 120_000);
});
