import { rm } from "node:fs/promises";
import { request } from "node:https";
import { filesRegion } from "@holdfast/common/engine-catalog/files.ts";
import { signUrl } from "@holdfast/common/objects/signed-url.ts";
import type { App, Attachment, Operation } from "@holdfast/sdk/index.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot, programDirectory } from "@holdfast/testing/platform/platform-software.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { type AppImages, createAppImages } from "@holdfast/testing/servers/app-images.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

// A hosted app with an attached files service: each test continues from the state of the one before.

const skipped = asRoot
  ? await requireRecipes(import.meta.filename, "apps", "files")
  : "needs root: containers of a machine";
const withinMs = 240_000;

describe.skipIf(skipped !== undefined)("a files service of a hosted app", { timeout: 300_000 }, () => {
  let platform: Platform;
  let directory: string;
  let media: string;
  let app: App;
  let attached: Attachment;
  let variables: Record<string, string>;

  beforeAll(async () => {
    directory = programDirectory("holdfast-push");
    let images: AppImages;
    [platform, images] = await Promise.all([startPlatform(), createAppImages(directory)]);
    const { api_key_id: username, api_key_secret: password, registry_url: registry } = platform.admin;
    const me = expectStatus(await platform.rest.get<{ organization_id: string }>("/me"), 200).json;
    const target = { host: new URL(registry).host, username, password, authorities: platform.ca };
    await images.push(target, { repository: `${me.organization_id}/shop`, tag: "1" }, {});
    const service = { name: "media", plan_name: "tier-1", storage_size_gb: 1, allowed_cidrs: [] };
    media = expectStatus(await platform.rest.post<ServiceJson>("/files-services", service), 202).json.id;
    const created = await platform.rest.post<App>("/app-services", { name: "shop", image_ref: "shop:1" });
    await ended(expectStatus(created, 202).json);
    const isRunning = async () =>
      (await platform.rest.get<ServiceJson>(`/files-services/${media}`)).json.status === "Running";
    await waitUntil("the files service runs", isRunning, { withinMs });
    app = expectStatus(await platform.rest.get<App>(`/app-services/${created.json.id}`), 200).json;
  }, 600_000);
  afterAll(async () => {
    await platform?.remove();
    await rm(directory, { recursive: true, force: true });
  });

  /** Resolves when the operation of the response is completed. */
  async function ended({ operation }: Pick<App, "operation">): Promise<void> {
    const get = () => platform.rest.get<Operation>(`/operations/${operation?.id ?? ""}`);
    const isOver = async () => (await get()).json.finished_at !== null;
    await waitUntil("the operation has ended", isOver, { withinMs, everyMs: 250 });
    expect((await get()).json).toMatchObject({ status: "completed" });
  }

  /** Output of a script in the app's container. */
  function run(script: string): Promise<string> {
    const { hostname, port, host } = new URL(app.hosted?.url ?? "");
    const path = `/sh?script=${encodeURIComponent(script)}`;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const target = { host: "127.0.0.1", port, servername: hostname, ca: platform.ca, path, headers: { host } };
    const call = request({ ...target, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.once("end", () => resolve(text));
    });
    call.once("error", reject);
    call.end();
    return promise.then((text) => JSON.parse(text) as string);
  }

  /** Status and body of a request from the container, by its key, to an object at this URL. */
  async function send(method: string, url: string, body = ""): Promise<string> {
    const { S3_ACCESS_KEY: id = "", S3_SECRET: secret = "" } = variables;
    const signed = await signUrl({ method, url, headers: {} }, { id, secret, region: filesRegion }, 60, new Date());
    const program =
      "const [url, method, body] = process.argv.slice(1);" +
      "fetch(url, { method, ...(body && { body }) }).then(" +
      "async (answer) => console.log(answer.status, await answer.text()), ({ cause }) => console.log(cause.code))";
    const words = ["node", "-e", program, signed, method, body].map((word) => `'${word}'`);
    return run(`NODE_EXTRA_CA_CERTS=/etc/holdfast/ca.pem ${words.join(" ")}`);
  }

  test("the deployment gives it the variables, and the response has no secret", async () => {
    const path = `/app-services/${app.id}/attachments`;
    attached = expectStatus(await platform.rest.post<Attachment>(path, { service_id: media }), 201).json;
    expect(attached).toMatchObject({ kind: "files", prefix: "MEDIA", variables: [], operation: { type: "deploy" } });
    await ended(attached);
    const names = ["S3_ENDPOINT", "S3_BUCKET", "S3_ACCESS_KEY", "S3_SECRET"];
    const printed = await run(names.map((name) => `echo "${name}=$${name}"`).join("\n"));
    variables = Object.fromEntries([...printed.matchAll(/(S3_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]));
    expect(Object.keys(variables)).toEqual(names);
    expect(variables["S3_ENDPOINT"]).toContain(".private.");
    expect(variables["S3_ACCESS_KEY"]).toBe(attached.access_key_id);
  });

  test("its container stores objects with the bucket in the path and in the host name, although nobody else may", async () => {
    const { S3_ENDPOINT: endpoint = "", S3_BUCKET: bucket = "" } = variables;
    expect(await send("PUT", `${endpoint}/${bucket}/one`, "in the path")).toBe("0 200 \n");
    const ofBucket = endpoint.replace("https://", `https://${bucket}.`);
    expect(await send("GET", `${ofBucket}/one`)).toBe("0 200 in the path\n");
    expect(await send("PUT", `${ofBucket}/two`, "in the host")).toBe("0 200 \n");
    expect(await send("GET", `${endpoint}/${bucket}/two`)).toBe("0 200 in the host\n");
  });

  test("it loses variables and key when it is detached", async () => {
    const endpoint = `${variables["S3_ENDPOINT"]}/${variables["S3_BUCKET"]}/one`;
    expectStatus(await platform.rest.delete(`/app-services/${app.id}/attachments/${attached.id}`), 204);
    await ended(expectStatus(await platform.rest.get<App>(`/app-services/${app.id}`), 200).json);
    expect(await run("echo $S3_ENDPOINT$S3_SECRET")).toBe("0 \n");
    expect(await send("GET", endpoint)).not.toContain("200");
    const keys = await platform.rest.get<{ keys: unknown[] }>(`/files-services/${media}/keys`);
    expect(expectStatus(keys, 200).json.keys).toEqual([]);
  });
});
