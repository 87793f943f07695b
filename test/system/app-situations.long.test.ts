import { generateKeyPairSync } from "node:crypto";
import { rm } from "node:fs/promises";
import type { App } from "@holdfast/sdk/index.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createHostedApps, type HostedApps, pushAppImage } from "@holdfast/testing/platform/hosted-apps.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot, programDirectory } from "@holdfast/testing/platform/platform-software.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { type AppImages, createAppImages } from "@holdfast/testing/servers/app-images.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

// Situations that users of other platforms reported, with a real app: each test names the report.

const skipped = asRoot ? await requireRecipes(import.meta.filename, "apps") : "needs root: containers of a machine";

describe.skipIf(skipped !== undefined)("a hosted app", { timeout: 300_000 }, () => {
  let platform: Platform;
  let directory: string;
  let images: AppImages;
  let apps: HostedApps;
  let app: App;
  let url: string;
  const change = async (body: object) => {
    const response = await platform.rest.patch<App>(`/app-services/${app.id}`, body);
    return apps.ended(expectStatus(response, 202).json);
  };
  const note = async () => (JSON.parse((await apps.request({ url })).text) as { note: string }).note;
  const variable = async (name: string) =>
    JSON.parse((await apps.request({ url, path: `/environment?name=${name}` })).text) as unknown;

  beforeAll(async () => {
    directory = programDirectory("holdfast-push");
    [platform, images] = await Promise.all([startPlatform(), createAppImages(directory)]);
    apps = createHostedApps(platform);
    await pushAppImage(platform, images, { name: "shop", tag: "latest" }, { NOTE: "first" });
    app = await apps.createRunning("shop", { image_ref: "shop", drain_seconds: 1, start_timeout_seconds: 15 });
    url = app.hosted?.url ?? "";
  }, 600_000);
  afterAll(async () => {
    await platform?.remove();
    await rm(directory, { recursive: true, force: true });
  });

  // coollabsio/coolify#820, #3946 and #7635
  test("values with dollars, quotes and lines reach the program unchanged", async () => {
    const env = {
      HASH: "$2a$12$mSNG/x=",
      QUOTES: `array:'self',"b"`,
      LINES: "one\ntwo\\n",
      EMPTY: "",
      NAME: "äöü 🦀 %s",
    };
    expect(await change({ env, secret_env: { KEY: "-----BEGIN-----\n$x\n" } })).toMatchObject({ status: "completed" });
    for (const [name, value] of Object.entries({ ...env, KEY: "-----BEGIN-----\n$x\n" }))
      expect([name, await variable(name)]).toEqual([name, value]);
  });

  test("a private key of 4,096 bits as a secret, and 200 variables, reach the program", async () => {
    const { privateKey } = generateKeyPairSync("rsa", {
      modulusLength: 4_096,
      publicKeyEncoding: { type: "spki", format: "pem" },
      privateKeyEncoding: { type: "pkcs8", format: "pem" },
    });
    const env = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`FEATURE_${at}`, `${at}`]));
    const secrets = { SIGNING_KEY: privateKey, LARGE: "x".repeat(32_000), LARGER: "y".repeat(32_768) };
    expect(await change({ env, secret_env: secrets })).toMatchObject({ status: "completed" });
    for (const [name, value] of Object.entries({ ...secrets, FEATURE_199: "199" }))
      expect([name, await variable(name)]).toEqual([name, value]);
    expect(
      await platform.rest.patch(`/app-services/${app.id}`, { secret_env: { KEY: "x".repeat(32_769) } }),
    ).toMatchObject({
      status: 400,
    });
    expect(await change({ env: {}, secret_env: {} })).toMatchObject({ status: "completed" });
  });

  test("the times of a deployment change with PATCH, and remain at the next one", async () => {
    expect(await change({ start_timeout_seconds: 20, drain_seconds: 0 })).toMatchObject({ status: "completed" });
    const times = async () => {
      const { json } = expectStatus(await platform.rest.get<App>(`/app-services/${app.id}`), 200);
      return [json.hosted?.start_timeout_seconds, json.hosted?.drain_seconds];
    };
    expect(await times()).toEqual([20, 0]);
    expect(await change({ drain_seconds: 1 })).toMatchObject({ status: "completed" });
    expect(await times()).toEqual([20, 1]);
  });

  // superfly/flyctl#4732 and dokku/dokku#2153
  test("a program finds its port in PORT, also after a change of it", async () => {
    expect(await variable("PORT")).toBe("8080");
    expect(await change({ port: 3_000 })).toMatchObject({ status: "completed" });
    expect(await variable("PORT")).toBe("3000");
  });

  // superfly/flyctl#2253
  test("the deployment of a program that listens at loopback alone fails with that reason", async () => {
    const failed = await change({ env: { LISTEN_ADDRESS: "127.0.0.1" } });
    const message = expect.stringContaining("one that listens at 127.0.0.1 alone is not reached");
    expect(failed).toMatchObject({ status: "failed", error: { message } });
    expect(await note()).toBe("first");
    expect(await change({ env: {} })).toMatchObject({ status: "completed" });
  });

  // coollabsio/coolify#11467
  test("a rollback runs the earlier image, although its tag names another one", async () => {
    await pushAppImage(platform, images, { name: "shop", tag: "latest" }, { NOTE: "second" });
    expect(await change({ image_ref: "shop:latest" })).toMatchObject({ status: "completed" });
    expect(await note()).toBe("second");
    const rollback = await platform.rest.post<App>(`/app-services/${app.id}/rollback`, {});
    expect(await apps.ended(expectStatus(rollback, 202).json)).toMatchObject({ status: "completed" });
    expect(await note()).toBe("first");
  });

  // coollabsio/coolify#1940
  test("a tag with capital letters is the image that was pushed by it", async () => {
    await pushAppImage(platform, images, { name: "shop", tag: "test-1QWE" }, { NOTE: "capital" });
    expect(await change({ image_ref: "shop:test-1QWE" })).toMatchObject({ status: "completed" });
    expect(await note()).toBe("capital");
    expect(await platform.rest.patch(`/app-services/${app.id}`, { image_ref: "Shop:1" })).toMatchObject({
      status: 400,
    });
  });

  // basecamp/kamal#1041: a path that redirects counts as ready, one that is absent does not.
  test("a health check that is 301 is ready, and one that is 404 fails with the status", async () => {
    expect(await change({ env: { ANSWERS: "301" }, health_check_path: "/health" })).toMatchObject({
      status: "completed",
    });
    const failed = await change({ health_check_path: "/absent" });
    expect(failed).toMatchObject({ status: "failed", error: { message: expect.stringContaining("404") } });
    expect(await note()).toBe("capital");
    expect(await change({ env: {}, health_check_path: null })).toMatchObject({ status: "completed" });
  });

  // Zeilenwerk/dokku-nginx-max-upload-size#3
  test("a body of 64 MiB reaches the program", async () => {
    const body = Buffer.alloc(64 << 20, "x");
    expect(await apps.request({ url, path: "/upload", body })).toEqual({ status: 200, text: String(body.length) });
  });

  // coollabsio/coolify#1499
  test("a program that ends is started again, and the app serves", async () => {
    await apps.request({ url, path: "/exit" }).catch(() => undefined);
    const isServed = async () => (await apps.request({ url }).catch(() => undefined))?.status === 200;
    await waitUntil("it serves again", isServed, { withinMs: 60_000 });
    expect(await note()).toBe("capital");
  });
});
