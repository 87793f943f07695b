import { once } from "node:events";
import { Resolver } from "node:dns/promises";
import { rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import type { LookupFunction } from "node:net";
import { Client, credentials } from "@grpc/grpc-js";
import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import type {
  App,
  AppCredentials,
  AppDeletion,
  AppDeployments,
  AppDomain,
  AppNodes,
  AppRegistry,
  Attachment,
  Operation,
  Project,
} from "@holdfast/sdk/index.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { startTestDnsServer, type TestDnsServer } from "@holdfast/testing/network/dns-zone.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot, programDirectory } from "@holdfast/testing/platform/platform-software.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { type AppImages, createAppImages } from "@holdfast/testing/servers/app-images.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Answer } from "dns-packet";
import { Agent as UndiciAgent, fetch, WebSocket } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

// Hosted apps of a whole installation: images in its registry, containers on machines of its host, and requests by
// HTTPS through its ingress.

const skipped = asRoot ? await requireRecipes(import.meta.filename, "apps") : "needs root: containers of a machine";
const withinMs = 240_000;
const floatingIp = "127.92.8.1";

/** Resolves every name to the loopback address, at which the ingress listens. */
const loopbackLookup: LookupFunction = (_name, _options, done) => done(null, [{ address: "127.0.0.1", family: 4 }]);

interface AppAnswer {
  readonly release: string;
  readonly note: string;
}

describe.skipIf(skipped !== undefined)("a hosted app", () => {
  let platform: Platform;
  let directory: string;
  let images: AppImages;
  /** Records of users' domains, by their name. */
  const texts = new Map<string, readonly Answer[]>();
  let dns: TestDnsServer;
  let id: string;
  let url: string;

  beforeAll(async () => {
    directory = programDirectory("holdfast-push");
    dns = await startTestDnsServer((name) => texts.get(name) ?? []);
    const environment = { HOLDFAST_DOMAIN_RESOLVERS: dns.address, HOLDFAST_FLOATING_IPS: floatingIp };
    [platform, images] = await Promise.all([startPlatform({ environment }), createAppImages(directory)]);
    await push("1");
    await push("2");
  }, 300_000);
  afterAll(async () => {
    await platform?.remove();
    await dns?.close();
    await rm(directory, { recursive: true, force: true });
  });

  async function push(tag: string): Promise<string> {
    const { api_key_id: username, api_key_secret: password, registry_url: url } = platform.admin;
    const { organization_id: organization } = expectStatus(
      await platform.rest.get<{ organization_id: string }>("/me"),
      200,
    ).json;
    const target = { host: new URL(url).host, username, password, authorities: platform.ca };
    return images.push(target, { repository: `${organization}/shop`, tag }, { NOTE: `image ${tag}` });
  }

  const get = async () => expectStatus(await platform.rest.get<App>(`/app-services/${id}`), 200).json;
  const operation = async (operationId: string) =>
    expectStatus(await platform.rest.get<Operation>(`/operations/${operationId}`), 200).json;

  /** Waits for the end of the operation, which is in the response of the call that requested it. */
  async function ended(requested: Pick<App, "operation">): Promise<Operation> {
    const operationId = requested.operation?.id ?? "";
    const isOver = async () => {
      const found = await operation(operationId);
      return found.finished_at === null ? undefined : found;
    };
    const describe = async () => JSON.stringify([await operation(operationId), await get()]);
    return waitUntil("the operation has ended", isOver, { withinMs, everyMs: 250, describe });
  }

  const machines = async () => {
    const { machines: all } = await asOperator(platform, FleetService, (fleet) => fleet.listMachines({}));
    return all.filter(({ ownerKind, ownerId }) => ownerKind === "app" && ownerId === id);
  };

  /**
   * Status of a request of the app's program to the platform's API, by the variables that it has, and the names of the
   * objects in a list.
   */
  async function platformCall(method: string, path: string): Promise<readonly [status: number, names: string[]]> {
    const program =
      "const [method, path] = process.argv.slice(1);" +
      "const { PLATFORM_API_URL: url, PLATFORM_API_TOKEN: token } = process.env;" +
      "fetch(url + path, { method, headers: { authorization: `Bearer ${token}` } }).then(" +
      "async (answer) => console.log(JSON.stringify([answer.status, await answer.json()])))";
    const words = ["node", "-e", program, method, path].map((word) => `'${word}'`);
    const script = `NODE_EXTRA_CA_CERTS=/etc/holdfast/ca.pem ${words.join(" ")}`;
    const { text } = await requestTo({ url, path: `/sh?script=${encodeURIComponent(script)}` });
    const output = JSON.parse(text) as string;
    if (!output.startsWith("0 ")) throw new Error(output);
    const [status, body] = JSON.parse(output.slice(2)) as [number, { services?: { name: string }[] }];
    return [status, (body.services ?? []).map(({ name }) => name)];
  }

  interface Target {
    /** Host and port of the app for its clients. */
    readonly url: string;
    readonly agent?: Agent;
    readonly path?: string;
    readonly address?: string;
  }

  /** Rows of a statement that the app sends to its database. */
  async function queried<T>(sql: string): Promise<T[]> {
    const { status, text } = await requestTo({ url, path: `/query?sql=${encodeURIComponent(sql)}` });
    if (status !== 200) throw new Error(`${status}: ${text}`);
    return JSON.parse(text) as T[];
  }

  /** Status and body of a request to the app, at the loopback address: the test's resolver does not have its name. */
  function requestTo({
    url,
    agent,
    path = "/",
    address = "127.0.0.1",
  }: Target): Promise<{ status: number | undefined; text: string }> {
    const { hostname, port, host } = new URL(url);
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number | undefined; text: string }>();
    const target = { host: address, port, servername: hostname, ca: platform.ca, path, headers: { host } };
    const call = request({ ...target, agent: agent ?? false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.once("end", () => resolve({ status: response.statusCode, text }));
      response.once("error", reject);
    });
    call.once("error", reject);
    call.end();
    return promise;
  }

  async function answerOf(target: Target): Promise<AppAnswer> {
    const { status, text } = await requestTo(target);
    if (status !== 200) throw new Error(`${status}: ${text}`);
    return JSON.parse(text) as AppAnswer;
  }

  test("POST with an image ends Running, and the container answers at its URL", async () => {
    const response = await platform.rest.post<App>("/app-services", {
      name: "shop",
      image_ref: "shop:1",
      health_check_path: "/health",
      env: { RELEASE: "first" },
      secret_env: { TOKEN: "hidden-value" },
    });
    const created = expectStatus(response, 202).json;
    id = created.id;
    expect(created).toMatchObject({
      hosting: "platform",
      status: "Pending",
      operation: { type: "create" },
      hosted: { image_ref: "shop:1", port: 8_080, replicas: 1, secret_env_names: ["TOKEN"], serves_newest: false },
    });
    expect(response.text).not.toContain("hidden-value");
    expect(await ended(created)).toMatchObject({ status: "completed", progress_pct: 100 });
    const app = await get();
    expect(app).toMatchObject({ status: "Running", operation: null, hosted: { serves_newest: true, reason: null } });
    expect(app.hosted?.image_digest).toMatch(/^sha256:/);
    url = app.hosted?.url ?? "";
    expect(new URL(url).hostname).toMatch(/^shop-[0-9a-f]{12}\.apps\./);
    expect(await answerOf({ url })).toMatchObject({ release: "first", note: "image 1" });
  }, 300_000);

  test("the API names the registry, and a token signs in to it", async () => {
    const { host, repository } = expectStatus(await platform.rest.get<AppRegistry>("/app-registry"), 200).json;
    expect(host).toBe(new URL(platform.admin.registry_url).host);
    const request = { scopes: ["apps:write"], ttl_seconds: 60 };
    const { token } = expectStatus(await platform.rest.post<{ token: string }>("/tokens", request), 201).json;
    const target = { host, username: "token", password: token, authorities: platform.ca };
    expect(await images.push(target, { repository: `${repository}/other`, tag: "1" }, {})).toMatch(/^sha256:/);
  }, 120_000);

  test("name servers have its name, and another host gets 421", async () => {
    const { hostname } = new URL(url);
    const resolver = new Resolver();
    resolver.setServers([platform.admin.dns_server]);
    expect(await resolver.resolve4(hostname)).toEqual(["127.0.0.1"]);
    const other = url.replace("shop-", "other-");
    expect(await requestTo({ url: other })).toEqual({ status: 421, text: "No app has this host.\n" });
  }, 300_000);

  test("a domain of the user is served once its record proves it, with a certificate for its name", async () => {
    const domain = "shop.example";
    const domains = `/app-services/${id}/domains`;
    const added = expectStatus(await platform.rest.post<AppDomain>(domains, { name: domain }), 201).json;
    const verify = () => platform.rest.post<AppDomain>(`${domains}/${added.id}/verify`, {});
    expect(await verify()).toMatchObject({ status: 422, json: { code: "custom_domain_not_verified" } });
    const { name, value } = added.verification;
    texts.set(name, [{ type: "TXT", name, data: [value] }]);
    expectStatus(await verify(), 200);
    expect((await get()).domains).toMatchObject([{ name: domain, status: "verified" }]);
    const target = { url: `https://${domain}:${new URL(url).port}` };
    const isServed = () => answerOf(target).catch(() => undefined);
    expect(await waitUntil("it is served", isServed, { withinMs: 10_000 })).toMatchObject({ note: "image 1" });
    expectStatus(await platform.rest.delete(`${domains}/${added.id}`), 204);
    const isRemoved = () =>
      requestTo(target).then(
        ({ status }) => status === 421,
        () => true,
      );
    await waitUntil("it is not served", isRemoved, { withinMs: 10_000 });
  }, 60_000);

  test("a floating IP is in DNS and reaches it with any host, until it is released", async () => {
    const path = `/app-services/${id}/floating-ip`;
    const { hostname } = new URL(url);
    const resolver = new Resolver();
    resolver.setServers([platform.admin.dns_server]);
    const resolves = (to: string) => async () => (await resolver.resolve4(hostname)).join() === to;
    expect(expectStatus(await platform.rest.call<App>("PUT", path, { body: {} }), 200).json.hosted?.floating_ip).toBe(
      floatingIp,
    );
    expectStatus(await platform.rest.call("PUT", path, { body: {} }), 200);
    await waitUntil("its name has the address", resolves(floatingIp), { withinMs: 30_000 });
    const other = { url: url.replace("shop-", "other-"), address: floatingIp };
    const isServed = () => answerOf(other).catch(() => undefined);
    expect(await waitUntil("the address serves it", isServed, { withinMs: 10_000 })).toMatchObject({ note: "image 1" });
    const { nodes } = expectStatus(await platform.rest.get<AppNodes>(`/app-services/${id}/nodes`), 200).json;
    expect(nodes.map(({ floating_ip: address }) => address)).toEqual([floatingIp]);
    expectStatus(await platform.rest.delete(path), 204);
    await waitUntil("its name has the address of all apps", resolves("127.0.0.1"), { withinMs: 30_000 });
    await waitUntil("the address serves no app", async () => (await requestTo(other)).status === 421);
  }, 60_000);

  test("a login form admits clients with its password, until it is turned off", async () => {
    const path = `/app-services/${id}`;
    const credentials = () => platform.rest.get<AppCredentials>(`${path}/credentials`);
    expect(await credentials()).toMatchObject({ status: 409, json: { code: "wrong_state" } });
    const auth = async (value: string) =>
      expectStatus(await platform.rest.patch<App>(path, { auth: value }), 200).json.hosted?.auth;
    expect(await auth("login_form")).toBe("login_form");
    await waitUntil("requests get the form", async () => (await requestTo({ url })).status === 401);
    const { username, password } = expectStatus(await credentials(), 200).json;
    expect(username).toBe("admin");
    const { hostname, port, host } = new URL(url);
    const form = new URLSearchParams({ username, password, return_to: "/" });
    const target = { host: "127.0.0.1", port, servername: hostname, ca: platform.ca, agent: false };
    const headers = { host, "content-type": "application/x-www-form-urlencoded", "content-length": `${form}`.length };
    const call = request({ ...target, method: "POST", path: "/.well-known/holdfast-login", headers });
    call.end(`${form}`);
    const [response] = (await once(call, "response")) as [IncomingMessage];
    response.resume();
    const cookie = response.headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? "";
    expect([response.statusCode, cookie]).toEqual([303, expect.stringMatching(/^__Host-holdfast-login=/)]);
    const signedIn = request({ ...target, path: "/", headers: { host, cookie } });
    signedIn.end();
    const [answer] = (await once(signedIn, "response")) as [IncomingMessage];
    answer.resume();
    expect(answer.statusCode).toBe(200);
    expect(await auth("none")).toBe("none");
    await waitUntil("requests reach it", async () => (await requestTo({ url })).status === 200);
  }, 60_000);

  test("WebSocket, server-sent events and gRPC reach the program", async () => {
    const { hostname, port } = new URL(url);
    const connect = { ca: platform.ca, servername: hostname, lookup: loopbackLookup };
    const dispatcher = new UndiciAgent({ connect });
    const socket = new WebSocket(`wss://${hostname}:${port}/`, { dispatcher });
    const message = new Promise<unknown>((resolve) => socket.addEventListener("message", ({ data }) => resolve(data)));
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    socket.send("over a WebSocket");
    expect(await message).toBe("over a WebSocket");
    socket.close();

    const events = await fetch(`https://${hostname}:${port}/events`, { dispatcher });
    const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader?.read())?.value).toBe("data: first\n\n");
    await reader?.cancel();
    await dispatcher.close();

    const tls = credentials.createSsl(Buffer.from(platform.ca));
    const options = { "grpc.ssl_target_name_override": hostname, "grpc.default_authority": `${hostname}:${port}` };
    const client = new Client(`127.0.0.1:${port}`, tls, options);
    const asIs = (value: Buffer) => value;
    const call = client.makeBidiStreamRequest("/shop.Shop/Echo", asIs, asIs);
    const received: string[] = [];
    call.on("data", (each: Buffer) => received.push(each.toString()));
    const status = once(call, "status");
    for (const text of ["one", "two"]) {
      call.write(Buffer.from(text));
      await waitUntil("the program returns the message", async () => received.at(-1) === text);
    }
    call.end();
    expect(await status).toMatchObject([{ code: 0 }]);
    client.close();
  }, 60_000);

  test("another image replaces it while 5,000 requests are served, none of which fails", async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const replaced = new AbortController();
    const counts = { failed: 0, "image 1": 0, "image 2": 0 };
    const failures = new Set<string>();
    const total = () => counts.failed + counts["image 1"] + counts["image 2"];
    const clients = Array.from({ length: 4 }, async () => {
      while (!replaced.signal.aborted || total() < 5_000) {
        const answer = await answerOf({ url, agent }).catch((error: unknown) => ({ note: String(error) }));
        if (answer.note === "image 1" || answer.note === "image 2") counts[answer.note] += 1;
        else {
          counts.failed += 1;
          failures.add(answer.note);
        }
      }
    });
    const changed = expectStatus(
      await platform.rest.patch<App>(`/app-services/${id}`, { image_ref: "shop:2" }),
      202,
    ).json;
    const busy = await platform.rest.patch(`/app-services/${id}`, { port: 8_081 });
    expect(busy).toMatchObject({ status: 409, json: { code: "operation_in_progress" } });
    expect(await ended(changed)).toMatchObject({ type: "deploy", status: "completed" });
    expect(await answerOf({ url })).toMatchObject({ release: "first", note: "image 2" });
    replaced.abort();
    await Promise.all(clients);
    agent.destroy();
    expect([counts.failed, ...failures]).toEqual([0]);
    expect(total()).toBeGreaterThanOrEqual(5_000);
    expect(counts["image 1"]).toBeGreaterThan(0);
    expect(counts["image 2"]).toBeGreaterThan(0);
  }, 300_000);

  test("a release that does not start leaves the one before serving, with its last lines", async () => {
    const changed = expectStatus(
      await platform.rest.patch<App>(`/app-services/${id}`, { env: { ENDS: "3" } }),
      202,
    ).json;
    const reason = "The program ended before it was ready, with the exit code 3.";
    expect(await ended(changed)).toMatchObject({ status: "failed", error: { code: "deploy_failed", message: reason } });
    const app = await get();
    const serving = { serving_deployment_number: 2, serving_image_ref: "shop:2" };
    const hosted = { failed_deployment_number: 3, serves_newest: false, reason, ...serving };
    expect(app).toMatchObject({ status: "Running", hosted });
    expect(app.hosted?.last_lines).toEqual(Array.from({ length: 20 }, (_, n) => `line ${n + 11}`));
    expect(app.hosted).toMatchObject({ image_ref: "shop:2", env: { RELEASE: "first" }, deployment_number: 2 });
    expect(await answerOf({ url })).toMatchObject({ release: "first", note: "image 2" });
  }, 300_000);

  test("changes after a failed deployment start from what serves, and other secret variables remain", async () => {
    const path = `/app-services/${id}`;
    const set = { set_env: { RELEASE: "second" }, set_secret_env: { KEY: "k" } };
    const changed = expectStatus(await platform.rest.patch<App>(path, set), 202).json;
    expect(await ended(changed)).toMatchObject({ status: "completed" });
    expect(await answerOf({ url })).toMatchObject({ release: "second", note: "image 2" });
    const script = encodeURIComponent('echo "$TOKEN $KEY"');
    expect(JSON.parse((await requestTo({ url, path: `/sh?script=${script}` })).text)).toBe("0 hidden-value k\n");
    const restarting = expectStatus(await platform.rest.post<App>(`${path}/restart`, {}), 202).json;
    expect(await ended(restarting)).toMatchObject({ type: "restart", status: "completed" });
    const missing = expectStatus(await platform.rest.patch<App>(path, { image_ref: "shop:absent" }), 202).json;
    const message = expect.stringContaining("The registry has no image shop:absent: shop has the tags 1, 2.");
    expect(await ended(missing)).toMatchObject({ status: "failed", error: { message } });
    expect((await get()).hosted).toMatchObject({ image_ref: "shop:2", failed_image_ref: "shop:absent" });
  }, 300_000);

  const listedDeployments = async () =>
    expectStatus(await platform.rest.get<AppDeployments>(`/app-services/${id}/deployments`), 200).json.deployments;

  test("a rollback deploys an image before again, after a failed deployment by its id, and both are listed", async () => {
    const path = `/app-services/${id}/rollback`;
    const refused = await platform.rest.post<{ detail: string }>(path, {});
    expect(refused).toMatchObject({ status: 409, json: { code: "wrong_state" } });
    expect(refused.json.detail).toContain("Deployment 6 failed and changed nothing: number 5 (shop:2) serves.");
    const deployment_id = (await listedDeployments()).at(-1)?.id;
    const changed = expectStatus(await platform.rest.post<App>(path, { deployment_id }), 202).json;
    expect(await ended(changed)).toMatchObject({ type: "deploy", status: "completed" });
    expect(await answerOf({ url })).toMatchObject({ release: "first", note: "image 1" });
    const deployments = await listedDeployments();
    expect(deployments.map(({ number, status, image_ref, serves }) => [number, status, image_ref, serves])).toEqual([
      [7, "succeeded", "shop:1", true],
      [6, "failed", "shop:absent", false],
      [5, "succeeded", "shop:2", false],
      [4, "succeeded", "shop:2", false],
      [3, "failed", "shop:2", false],
      [2, "succeeded", "shop:2", false],
      [1, "succeeded", "shop:1", false],
    ]);
    const { nodes } = expectStatus(await platform.rest.get<AppNodes>(`/app-services/${id}/nodes`), 200).json;
    expect(nodes).toMatchObject([{ status: "Running", deployment_id: deployments[0]?.id }]);
  }, 300_000);

  test("its logs, health, metrics and events are below its path", async () => {
    const view = async <T>(path: string) =>
      expectStatus(await platform.rest.get<T>(`/app-services/${id}/${path}`), 200).json;
    const { lines } = await view<{ lines: { message: string }[] }>("logs");
    expect(lines.map(({ message }) => message)).toContain("release first listens");
    expect(lines.map(({ message }) => message)).toContain("release first stops");
    const health = await view<{ checks: { name: string; status: string }[] }>("health");
    expect(health).toMatchObject({ status: "healthy" });
    expect(health.checks).toContainEqual(expect.objectContaining({ name: "program", status: "healthy" }));
    const series = async () =>
      (await view<{ series: { points: unknown[] }[] }>("metrics?metric=cpu")).series[0]?.points;
    await waitUntil("it has samples", async () => ((await series()) ?? []).length > 0, { withinMs });
    const { events } = await view<{ events: { event_type: string }[] }>("events");
    expect(events.map(({ event_type: type }) => type)).toContain("app.deployed");
    expect((await platform.rest.get(`/files-services/${id}/health`)).status).toBe(404);
  }, 300_000);

  const post = async (verb: string) =>
    expectStatus(await platform.rest.post<App>(`/app-services/${id}/${verb}`, {}), 202).json;

  test("a stopped app is 503 until it is started, and a restart deploys it again", async () => {
    expect(await ended(await post("stop"))).toMatchObject({ type: "stop", status: "completed" });
    expect(await get()).toMatchObject({ status: "Stopped" });
    await waitUntil("the ingress has no machine of it", async () => (await requestTo({ url })).status === 503);
    const refused = await platform.rest.patch(`/app-services/${id}`, { port: 8_081 });
    expect(refused).toMatchObject({ status: 409, json: { code: "wrong_state" } });
    expect(await ended(await post("start"))).toMatchObject({ type: "start", status: "completed" });
    expect(await get()).toMatchObject({ status: "Running" });
    expect(await answerOf({ url })).toMatchObject({ release: "first" });
    const restarting = await post("restart");
    expect(await ended(restarting)).toMatchObject({ type: "restart", status: "completed" });
    expect(restarting.hosted?.deployment_number).toBe(8);
    expect(await answerOf({ url })).toMatchObject({ release: "first", note: "image 1" });
  }, 300_000);

  test("an app gets another machine, and loses it again", async () => {
    const scale = async (replicas: number) =>
      expectStatus(await platform.rest.patch<App>(`/app-services/${id}`, { replicas }), 202).json;
    expect(await ended(await scale(2))).toMatchObject({ type: "scale", status: "completed" });
    const { nodes } = expectStatus(await platform.rest.get<AppNodes>(`/app-services/${id}/nodes`), 200).json;
    expect(nodes.map(({ status }) => status)).toEqual(["Running", "Running"]);
    expect(await answerOf({ url })).toMatchObject({ note: "image 1" });
    expect(await platform.rest.patch(`/app-services/${id}`, { replicas: 2 })).toMatchObject({ status: 422 });
    // Requests that each machine has in progress, until after it has ended.
    const scaled = new AbortController();
    const outcomes: string[] = [];
    const clients = Array.from({ length: 8 }, async () => {
      while (!scaled.signal.aborted) {
        const { release } = await answerOf({ url, path: "/slow" }).catch((error: unknown) => ({ release: `${error}` }));
        outcomes.push(release);
      }
    });
    await waitUntil("both machines have served requests", async () => outcomes.length > 8, { withinMs });
    expect(await ended(await scale(1))).toMatchObject({ type: "scale", status: "completed" });
    expect(await answerOf({ url })).toMatchObject({ note: "image 1" });
    scaled.abort();
    await Promise.all(clients);
    expect(outcomes.filter((outcome) => outcome !== "first")).toEqual([]);
    await waitUntil("the other machine is deleted", async () => (await machines()).length === 1, { withinMs });
  }, 300_000);

  test("a stop, a start and changes of scale complete while controllers are killed", async () => {
    const killControllers = () => {
      for (const controller of platform.processes().controllers) killImmediately(controller);
    };
    /** Ends controllers once the operation is accepted, and those after them once they have it. */
    async function endedWithKills({ operation: requested }: App): Promise<string> {
      killControllers();
      const found = async () => {
        const response = await platform.rest.get<Operation>(`/operations/${requested?.id}`).catch(() => undefined);
        return response?.status === 200 ? response.json : undefined;
      };
      await waitUntil("the next controllers have the operation", found, { withinMs, everyMs: 100 });
      killControllers();
      const isOver = async () => {
        const next = await found();
        return next !== undefined && next.finished_at !== null ? next : undefined;
      };
      return (await waitUntil("the operation has ended", isOver, { withinMs, everyMs: 250 })).status;
    }
    const scale = async (replicas: number) =>
      expectStatus(await platform.rest.patch<App>(`/app-services/${id}`, { replicas }), 202).json;
    expect(await endedWithKills(await post("stop"))).toBe("completed");
    expect(await endedWithKills(await post("start"))).toBe("completed");
    expect(await endedWithKills(await scale(2))).toBe("completed");
    expect(await endedWithKills(await scale(1))).toBe("completed");
    expect(await get()).toMatchObject({ status: "Running", operation: null });
    const isServed = () => answerOf({ url }).catch(() => undefined);
    expect(await waitUntil("the ingress serves it", isServed, { withinMs })).toMatchObject({ note: "image 1" });
    await waitUntil("one machine remains", async () => (await machines()).length === 1, { withinMs });
  }, 600_000);

  test("an attached database is reached by its URL, as a user of the app that owns nothing", async () => {
    const { service } = await createServices(platform).createRunning("orders", { allowed_cidrs: ["192.0.2.1/32"] });
    const attach = (body: object) => platform.rest.post<Attachment>(`/app-services/${id}/attachments`, body);
    const attached = expectStatus(await attach({ service_id: service.id }), 201).json;
    expect(attached).toMatchObject({ kind: "postgresql", prefix: "ORDERS", operation: { type: "deploy" } });
    expect(await ended(attached)).toMatchObject({ status: "completed" });
    const roles =
      "SELECT session_user AS login, current_user AS role, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    expect(await queried(roles)).toEqual([{ login: attached.username, role: "app_user", ssl: true }]);
    await queried("CREATE TABLE orders AS SELECT 7 AS number");
    expect(await queried("SELECT tableowner FROM pg_tables WHERE tablename = 'orders'")).toEqual([
      { tableowner: "app_user" },
    ]);

    const unattached = `/managed-services/${(await createServices(platform).create("unattached")).id}`;
    expect(await platformCall("GET", "/managed-services")).toEqual([200, ["orders"]]);
    expect(await platformCall("GET", `/managed-services/${service.id}`)).toEqual([200, []]);
    expect(await platformCall("GET", unattached)).toEqual([404, []]);
    expect(await platformCall("GET", "/files-services")).toEqual([200, []]);
    expect(await platformCall("GET", `/app-services/${id}`)).toEqual([403, []]);
    expect(await platformCall("DELETE", `/managed-services/${service.id}`)).toEqual([403, []]);
    expect((await platform.rest.get(unattached)).status).toBe(200);
    expectStatus(await platform.rest.delete(unattached), 202);

    expect(await attach({ service_id: service.id, database_name: "other" })).toMatchObject({ status: 400 });
    expect(await attach({ service_id: service.id, database_name: "nope", prefix: "NOPE" })).toMatchObject({
      status: 404,
      json: {
        code: "database_not_found",
        detail: expect.stringMatching(/^The service orders has no database nope\. It has/),
      },
    });
    const reserved = await platform.rest.patch(`/app-services/${id}`, { env: { DATABASE_URL: "x" } });
    expect(reserved).toMatchObject({ status: 400, json: { errors: [{ code: "env_name_reserved" }] } });
    const refused = await platform.rest.delete(`/managed-services/${service.id}`);
    expect(refused).toMatchObject({ status: 409, json: { code: "attachment_in_use" } });
    const user = `/managed-services/${service.id}/database-users/${attached.username}`;
    expect(await platform.rest.delete(user)).toMatchObject({ status: 422 });

    expectStatus(await platform.rest.delete(`/app-services/${id}/attachments/${attached.id}`), 204);
    const isEnded = async () => (await platform.rest.get(user)).status === 404;
    await waitUntil("the user of the app is dropped with its sessions", isEnded, { withinMs: 5_000, everyMs: 100 });
    const detached = await get();
    expect(await ended(detached)).toMatchObject({ status: "completed" });
    expect(await platformCall("GET", "/managed-services")).toEqual([200, []]);
    expect((await requestTo({ url, path: "/query?sql=SELECT" })).status).not.toBe(200);
    await createServices(platform).delete(service.id);
  }, 300_000);

  test("a project of a database and an app deploys whole, changes its app, and is deleted", async () => {
    type Changed = { env: Record<string, string>; auth?: string };
    const descriptor = (changed: Changed) => ({
      name: "store",
      resources: [
        { logical_name: "web", kind: "app", spec: { image: "shop:1", ...changed, attachments: ["db"] } },
        { logical_name: "db", kind: "postgres", spec: { plan: "tier-1", storage_gb: 1 } },
      ],
    });
    const project = async () => expectStatus(await platform.rest.get<Project>("/projects/store"), 200).json;
    const deployed = async (changed: Changed) => {
      expectStatus(await platform.rest.post("/projects/deploy", { descriptor: descriptor(changed) }), 202);
      const isOver = async () =>
        ["Running", "Failed"].includes((await project()).status) ? await project() : undefined;
      const describe = async () => JSON.stringify(await project());
      return waitUntil("the deployment has ended", isOver, { withinMs, everyMs: 250, describe });
    };
    const first = await deployed({ env: { RELEASE: "of a project" } });
    expect(first).toMatchObject({ status: "Running" });
    const appId = first.resources.find(({ kind }) => kind === "app")?.resource_id ?? "";
    const web = async () => expectStatus(await platform.rest.get<App>(`/app-services/${appId}`), 200).json;
    expect(await web()).toMatchObject({ name: "store-web", status: "Running", attachments: [{ prefix: "DB" }] });
    const target = { url: (await web()).hosted?.url ?? "" };
    expect(await answerOf(target)).toMatchObject({ release: "of a project" });
    const path = `/query?sql=${encodeURIComponent("SELECT current_user AS role")}`;
    expect(JSON.parse((await requestTo({ ...target, path })).text)).toEqual([{ role: "app_user" }]);
    expect(await platform.rest.delete(`/app-services/${appId}`)).toMatchObject({ status: 409 });

    expect(await deployed({ env: { RELEASE: "changed" } })).toMatchObject({ status: "Running", health: "healthy" });
    expect(await answerOf(target)).toMatchObject({ release: "changed" });
    const status_detail =
      "web: the deployment of the app failed: The program ended before it was ready, with the exit code 3.";
    expect(await deployed({ env: { ENDS: "3" } })).toMatchObject({ status: "Failed", status_detail });
    expect(await answerOf(target)).toMatchObject({ release: "changed" });
    const gated = { env: { RELEASE: "changed" }, auth: "login_form" };
    expect(await deployed(gated)).toMatchObject({ status: "Running" });
    expect((await web()).hosted?.auth).toBe("login_form");
    const isGated = async () => (await requestTo(target)).status === 401;
    await waitUntil("clients get the form", isGated, { withinMs });
    expectStatus(await platform.rest.delete("/projects/store"), 202);
    const isDeleted = async () => (await platform.rest.get(`/app-services/${appId}`)).status === 404;
    await waitUntil("the app is deleted", isDeleted, { withinMs, everyMs: 250 });
    const isOver = async () => (await project()).status === "Deleted";
    await waitUntil("the project is deleted", isOver, { withinMs, everyMs: 250 });
  }, 300_000);

  test("an app reaches another one that is attached to it, and nothing of it otherwise", async () => {
    const created = expectStatus(
      await platform.rest.post<App>("/app-services", { name: "caller", image_ref: "shop:1" }),
      202,
    ).json;
    expect(await ended(created)).toMatchObject({ status: "completed" });
    const caller = expectStatus(await platform.rest.get<App>(`/app-services/${created.id}`), 200).json;
    const ask = async (path: string) => {
      const { text } = await requestTo({ url: caller.hosted?.url ?? "", path });
      return JSON.parse(text) as string;
    };
    const attach = (body: object) => platform.rest.post<Attachment>(`/app-services/${created.id}/attachments`, body);
    expect(await attach({ service_id: created.id })).toMatchObject({ status: 400 });
    const attached = expectStatus(await attach({ service_id: id }), 201).json;
    expect(attached).toMatchObject({ kind: "app", prefix: "SHOP", username: null });
    expect(await ended(attached)).toMatchObject({ status: "completed" });
    const [, shop = ""] = /^0 http:\/\/(\S+):7000\n$/.exec(await ask("/sh?script=echo%20$SHOP_URL")) ?? [];
    expect(shop).toMatch(/^shop-[0-9a-f]{12}\.private\.apps\./);
    expect(await ask(`/connect?host=${shop}&port=7000`)).toBe("connected");
    expect(await ask(`/connect?host=${shop}&port=20001`)).toBe("ECONNREFUSED");
    const reserved = await platform.rest.patch(`/app-services/${id}`, { port: 80 });
    expect(reserved).toMatchObject({ status: 422, json: { code: "port_80_reserved" } });
    const refused = await platform.rest.delete(`/app-services/${id}`);
    expect(refused).toMatchObject({ status: 409, json: { code: "attachment_in_use" } });
    expectStatus(await platform.rest.delete(`/app-services/${created.id}`), 202);
    const isDeleted = async () => (await platform.rest.get(`/app-services/${created.id}`)).status === 404;
    await waitUntil("the caller is deleted", isDeleted, { withinMs, everyMs: 250 });
  }, 300_000);

  test("an ingress that was killed serves from its disk while no controller runs", async () => {
    const { controllers, ingress = 0 } = platform.processes();
    expect(ingress).toBeGreaterThan(0);
    for (const controller of controllers) process.kill(controller, "SIGSTOP");
    try {
      process.kill(ingress, "SIGKILL");
      const isServed = async () => {
        const isOther = ![undefined, ingress].includes(platform.processes().ingress);
        return isOther && (await answerOf({ url }).catch(() => undefined));
      };
      const answer = await waitUntil("the next ingress serves", isServed, { withinMs: 60_000 });
      expect(answer).toMatchObject({ release: "first", note: "image 1" });
    } finally {
      for (const controller of controllers) process.kill(controller, "SIGCONT");
    }
  }, 120_000);

  test("an app is deleted with its machines", async () => {
    const deletion = expectStatus(await platform.rest.delete<AppDeletion>(`/app-services/${id}`), 202).json;
    expect(deletion).toMatchObject({ id, operation: { type: "delete" } });
    const isDeleted = async () => (await platform.rest.get(`/app-services/${id}`)).status === 404;
    await waitUntil("the app is deleted", isDeleted, { withinMs, everyMs: 250 });
    expect(await machines()).toEqual([]);
    await waitUntil("its name is not served", async () => (await requestTo({ url })).status === 421);
    expect(await operation(deletion.operation?.id ?? "")).toMatchObject({ status: "completed", progress_pct: 100 });
  }, 300_000);
});
