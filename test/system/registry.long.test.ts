import { chownSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { inImage } from "@holdfast/image/in-image.ts";
import { findImage, imagesDirectory } from "@holdfast/image/node-image.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createOrganizations, type Organizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot, programDirectory, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { runLaunch } from "@holdfast/testing/servers/run-launch.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

// The registry of a whole installation, with skopeo as its client and the platform's own credentials.

const skipped = asRoot
  ? await requireRecipes(import.meta.filename, "apps")
  : "needs root: another user for the program";

describe.skipIf(skipped !== undefined)("the registry of an installation", () => {
  let platform: Platform;
  let directory: string;
  let organizations: Organizations;
  let organization: string;
  let host: string;
  let skopeo: (...words: string[]) => Promise<string>;

  beforeAll(async () => {
    const image = findImage(imagesDirectory(process.env), "apps");
    if (image === undefined) throw new Error("there is no image of apps");
    directory = programDirectory("holdfast-push");
    mkdirSync(join(directory, "authorities"));
    chownSync(directory, testUid, testUid);
    const run = (argv: readonly string[]) =>
      runLaunch(inImage(image.root, { argv, uid: testUid, binds: [directory], asRoot }));
    skopeo = (...words) => run(["skopeo", "--insecure-policy", ...words]);
    await run(["umoci", "init", "--layout", join(directory, "layout")]);
    await run(["umoci", "new", "--image", `${join(directory, "layout")}:shop`]);
    platform = await startPlatform();
    writeFileSync(join(directory, "authorities", "ca.crt"), platform.ca);
    ({ host } = new URL(platform.admin.registry_url));
    organizations = createOrganizations(platform);
    organization = await organizations.first();
  }, 300_000);
  afterAll(async () => {
    organizations?.close();
    await platform?.remove();
    await rm(directory, { recursive: true, force: true });
  });

  const push = (credentials: string, repository: string) =>
    skopeo(
      "copy",
      "--quiet",
      "--retry-times=0",
      `--dest-cert-dir=${join(directory, "authorities")}`,
      `--dest-creds=${credentials}`,
      `--digestfile=${join(directory, "digest")}`,
      `oci:${join(directory, "layout")}:shop`,
      `docker://${host}/${repository}`,
    ).then(() => readFileSync(join(directory, "digest"), "utf8"));
  const inspect = (credentials: string, reference: string) =>
    skopeo(
      "inspect",
      "--retry-times=0",
      `--cert-dir=${join(directory, "authorities")}`,
      `--creds=${credentials}`,
      `docker://${host}/${reference}`,
    );

  test("users, keys and tokens of an organization push and pull its images, and nobody else", async () => {
    const { username, password, api_key_id: keyId, api_key_secret: keySecret } = platform.admin;
    const digest = await push(`${keyId}:${keySecret}`, `${organization}/shop:1`);
    const token = await platform.rest.post<{ token: string }>("/tokens", { scopes: ["apps:write"], ttl_seconds: 600 });
    for (const credentials of [`${username}:${password}`, `token:${token.json.token}`, `token:${platform.admin.token}`])
      expect(await inspect(credentials, `${organization}/shop@${digest}`), credentials.slice(0, 5)).toContain(digest);

    const reader = await platform.rest.post<{ token: string }>("/tokens", { scopes: ["apps:read"], ttl_seconds: 600 });
    await expect(inspect(`token:${reader.json.token}`, `${organization}/shop:1`)).rejects.toThrow(
      /unauthorized|authentication required|invalid username/,
    );
    await expect(inspect(`${username}:wrong`, `${organization}/shop:1`)).rejects.toThrow(
      /unauthorized|authentication required|invalid username/,
    );
    const other = await organizations.create("other");
    const key = await organizations.createKey(other);
    const credentials = `${key.id}:${key.secret}`;
    await expect(inspect(credentials, `${organization}/shop:1`)).rejects.toThrow(
      /denied|unauthorized|authentication required/,
    );
    await expect(push(credentials, `${organization}/shop:2`)).rejects.toThrow(
      /denied|unauthorized|authentication required/,
    );
    await push(credentials, `${other}/shop:1`);
  }, 120_000);

  test("images survive a kill of everything, and the registry waits for a controller", async () => {
    const credentials = `${platform.admin.api_key_id}:${platform.admin.api_key_secret}`;
    await platform.kill9();
    await platform.start();
    await waitUntil(
      "the registry serves",
      () => inspect(credentials, `${organization}/shop:1`).catch(() => undefined),
      {
        withinMs: 60_000,
      },
    );
  }, 180_000);
});
