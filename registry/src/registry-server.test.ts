import { randomBytes } from "node:crypto";
import { chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { inImage } from "@holdfast/image/in-image.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { inheritedNames } from "@holdfast/testing/hostile/inherited-names.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { asRoot, programDirectory, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { runLaunch } from "@holdfast/testing/servers/run-launch.ts";
import { startTestRegistry, type TestRegistry } from "@holdfast/testing/servers/test-registry.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

// The real docker-registry with skopeo as its client; only the controller's decision about callers is a table.

const skipped = asRoot
  ? await requireRecipes(import.meta.filename, "apps")
  : "needs root: another user for the program";

const users = {
  developer: { namespace: "o-1", actions: ["pull", "push", "delete"] },
  machine: { namespace: "o-1", actions: ["pull"] },
  foreign: { namespace: "o-2", actions: ["pull", "push", "delete"] },
};
const mib = 1 << 20;

describe.skipIf(skipped !== undefined)("the registry of images", () => {
  let directory: string;
  let registry: TestRegistry;
  let run: (argv: readonly string[]) => Promise<string>;

  const start = async () => {
    const objects = {
      objects: pathToFileURL(join(directory, "objects")).href,
      objectsKeyFile: "",
      objectsCa: "",
      objectsEncryption: "none",
    };
    registry = await startTestRegistry({ directory, objects, users, organizationBytes: 8 * mib });
  };
  const call: TestRegistry["call"] = (...words) => registry.call(...words);

  beforeAll(async () => {
    const image = findImage(imagesDirectory(process.env), "apps");
    if (image === undefined) throw new Error("there is no image of apps");
    directory = programDirectory("holdfast-registry");
    run = (argv) => runLaunch(inImage(image.root, { argv, uid: testUid, binds: [directory], asRoot }));
    await start();
    // A small image, and two that do not fit together within the organization's limit.
    const sizes = { small: 1_000, large: 7 * mib, other: 4 * mib };
    const layout = join(directory, "layout");
    for (const [name, bytes] of Object.entries(sizes)) {
      const [tree, file] = [join(directory, name), join(directory, name, "file")];
      mkdirSync(tree);
      writeFileSync(file, randomBytes(bytes));
      for (const path of [tree, file]) chownSync(path, testUid, testUid);
    }
    chownSync(directory, testUid, testUid);
    await run(["umoci", "init", "--layout", layout]);
    for (const name of Object.keys(sizes)) {
      await run(["umoci", "new", "--image", `${layout}:${name}`]);
      await run(["umoci", "insert", "--rootless", "--image", `${layout}:${name}`, join(directory, name), "/"]);
    }
  }, 120_000);
  afterAll(async () => {
    await registry?.stop();
    await rm(directory, { recursive: true, force: true });
  });

  const skopeo = (...words: string[]) => run(["skopeo", "--insecure-policy", ...words]);
  const options = (side: "src" | "dest", user: string) => [
    `--${side}-cert-dir=${registry.authorities}`,
    `--${side}-creds=${user}:x`,
  ];
  const push = (user: string, name: string, to: string) =>
    skopeo(
      "copy",
      "--quiet",
      "--retry-times=0",
      ...options("dest", user),
      `--digestfile=${join(directory, "digest")}`,
      `oci:${join(directory, "layout")}:${name}`,
      `docker://${registry.host}/${to}`,
    ).then(() => readFileSync(join(directory, "digest"), "utf8"));
  const pull = (user: string, from: string) =>
    skopeo(
      "copy",
      "--quiet",
      ...options("src", user),
      `docker://${registry.host}/${from}`,
      `oci:${join(directory, "pulled")}:${user}`,
    );

  test("an image that is pushed by its tag is pulled by its digest, by a credential that only pulls", async () => {
    const digest = await push("developer", "small", "o-1/shop:1");
    expect(digest).toMatch(/^sha256:[0-9a-f]{64}$/);
    await pull("machine", `o-1/shop@${digest}`);
    const [stored] = await readdir(join(directory, "objects", "registry"));
    expect(stored).toBe("docker");
    await expect(push("machine", "small", "o-1/shop:2")).rejects.toThrow(/denied|unauthorized|authentication required/);
  });

  test("repositories of another organization can be neither read nor written", async () => {
    await expect(pull("foreign", "o-1/shop:1")).rejects.toThrow(/denied|unauthorized|authentication required/);
    await expect(push("foreign", "small", "o-1/shop:1")).rejects.toThrow(/denied|unauthorized|authentication required/);
    await expect(push("nobody", "small", "o-1/shop:1")).rejects.toThrow(
      /unauthorized|authentication required|invalid username/,
    );
    await push("foreign", "small", "o-2/shop:1");
  });

  test("callers without a token get the token endpoint, and bad tokens are refused", async () => {
    const { status, challenge } = await call("GET", "/v2/");
    expect(status).toBe(401);
    expect(challenge).toMatch(
      new RegExp(
        `^Bearer realm="https://${registry.host.replaceAll(".", "\\.")}/auth/token/?",service="holdfast-registry"`,
      ),
    );
    for (const authorization of ["Bearer x", "Bearer a.b.c", "Basic ZGV2ZWxvcGVyOng="])
      expect((await call("GET", "/v2/o-1/shop/manifests/1", { authorization })).status).toBe(401);
    expect((await call("GET", "/v2/_catalog")).status).toBe(401);
    expect((await call("GET", "/debug/vars")).status).toBe(404);
    expect((await call("POST", "/auth/token")).status).toBe(405);
    expect((await call("POST", "/v2/o-1/shop/blobs/uploads/", {}, "x".repeat(100_000))).status).toBe(401);
  });

  test("names that every object inherits are unknown", async () => {
    registry.failures.splice(0);
    const authorization = `Basic ${Buffer.from("developer:x").toString("base64")}`;
    for (const word of inheritedNames) {
      expect((await call("GET", `/${word}`)).status, word).toBe(404);
      expect((await call("PROPFIND", `/v2/${word}/manifests/1`)).status, word).toBeGreaterThanOrEqual(400);
      expect((await call("GET", `/auth/token?scope=${word}`)).status, word).toBe(401);
      const scope = encodeURIComponent(`${word}:o-1/${word}:${word}`);
      const { status, text } = await call("GET", `/auth/token?${word}=1&scope=${scope}`, { authorization });
      expect(status, word).toBe(200);
      const [, body = ""] = (JSON.parse(text) as { token: string }).token.split(".");
      expect(JSON.parse(Buffer.from(body, "base64url").toString())).toMatchObject({ access: [] });
    }
    expect(registry.failures).toEqual([]);
  });

  test("images on the disk of the registry, where earlier releases have them, are moved to the object store", async () => {
    await registry.stop();
    const [before, store] = [join(directory, "data", "images"), join(directory, "objects", "registry")];
    await mkdir(before, { recursive: true });
    chownSync(before, testUid, testUid);
    await rename(join(store, "docker"), join(before, "docker"));
    await start();
    await pull("machine", "o-1/shop:1");
    // Also into a store that has other images already.
    await registry.stop();
    await rename(join(store, "docker"), join(directory, "kept"));
    await start();
    await push("foreign", "small", "o-2/next:1");
    await registry.stop();
    await rename(join(directory, "kept"), join(before, "docker"));
    await start();
    await pull("machine", "o-1/shop:1");
    await pull("foreign", "o-2/next:1");
    expect(await readdir(before)).toEqual([]);
  });

  test("images beyond the organization's limit are refused, until others are deleted", async () => {
    const digest = await push("developer", "large", "o-1/large:1");
    await expect(push("developer", "other", "o-1/other:1")).rejects.toThrow(/maximum size|507/);
    const bearer = await registry.bearer("developer", "repository:o-1/a/b:pull,push");
    // Also by another spelling of the path.
    for (const path of ["/v2/o-1/a/b/blobs/uploads/", "/v2/o-1/a%2Fb/blobs/uploads/"]) {
      const { status } = await call("POST", `${path}?digest=sha256:${"0".repeat(64)}`, bearer, "x".repeat(2 * mib));
      expect(status, path).toBe(507);
    }
    await push("foreign", "other", "o-2/other:1");

    await skopeo(
      "delete",
      `--cert-dir=${registry.authorities}`,
      "--creds=developer:x",
      `docker://${registry.host}/o-1/large@${digest}`,
    );
    // The next start removes the layers.
    await registry.stop();
    await start();
    await push("developer", "other", "o-1/other:1");
    await pull("machine", "o-1/shop:1");
  });
});
