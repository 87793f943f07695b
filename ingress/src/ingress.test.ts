import { createHash, randomBytes, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
  type Server,
} from "node:http";
import {
  connect as connectH2,
  createServer as createServerH2,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from "node:http2";
import { request } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect as connectTls, type PeerCertificate } from "node:tls";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { imagesDirectory } from "@holdfast/image/node-image.ts";
import { createKeyWithRequest } from "@holdfast/mtls/certificate-request.ts";
import { createTestAuthority, type TestAuthority } from "@holdfast/testing/controller/test-authority.ts";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { asRoot, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Certificate, createHaproxy, type Haproxy, haproxyFilesBelow, loginSocketBelow } from "./haproxy.ts";
import { createIngress, type Ingress } from "./ingress.ts";
import { type LoginServer, loginCookie, loginPath, startLoginServer } from "./login-server.ts";
import type { HostCertificate, Route } from "./route-table.ts";

// The real HAProxy before servers of the test, which stand for the machines of apps.

/** An address of this test, whose port 80 is free. */
const redirectAddress = "127.92.7.1";
/** Address of an app, beside the one of all apps. */
const floatingIp = "127.92.7.2";

const skipped = asRoot
  ? await requireRecipes(import.meta.filename, "apps")
  : "needs root: another user for the program";

interface Answer {
  readonly status: number | undefined;
  readonly body: string;
}

interface SentRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Bytes of the response's headers that the client accepts. */
  readonly maxHeaderSize?: number;
}

describe.skipIf(skipped !== undefined)("the ingress", () => {
  const stopping = new AbortController();
  const routes = new Map<string, Route>();
  const faults: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const log = { ...silentLog, error: (_: string, { error }: { error?: unknown } = {}) => void faults.push(`${error}`) };
  const hostKey = createKeyWithRequest();
  let authority: TestAuthority;
  let directory: string;
  let port: number;
  let challengesPort: number;
  let certificate: Certificate;
  let haproxy: Haproxy;
  let ingress: Ingress;
  let login: LoginServer;
  let run: Promise<void>;
  const servers: Server[] = [];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-ingress-"));
    const below = join(directory, "haproxy");
    mkdirSync(below);
    [port, challengesPort] = (await freePorts(2)) as [number, number];
    authority = await createTestAuthority();
    const made = await createTestCertificate();
    certificate = { key: made.key, certificate: made.cert };
    haproxy = createHaproxy({
      listen: [`127.0.0.1:${port}`, `${floatingIp}:${port}`],
      redirectListen: [`${redirectAddress}:80`],
      challengesServer: `127.0.0.1:${challengesPort}`,
      connections: 200,
      directory: below,
      hostKey: hostKey.privateKey,
      uid: testUid,
      imagesDir: imagesDirectory(process.env),
      environment: process.env,
      onEnd: () => ingress.changed(),
      log,
    });
    ingress = createIngress({
      haproxy,
      files: haproxyFilesBelow(below, hostKey.privateKey),
      routes: () => routes,
      certificate: () => certificate,
      startsWithoutRoutes: false,
      delay: () => Promise.resolve(),
      random: () => 0,
      log,
    });
    login = await startLoginServer({
      socket: loginSocketBelow(below),
      uid: asRoot ? testUid : undefined,
      routeOf: (appId) => routes.get(appId),
      clock: systemClock,
      log,
    });
    run = ingress.run(stopping.signal);
  }, 60_000);
  afterAll(async () => {
    stopping.abort();
    await run;
    await login.close();
    for (const server of servers) server.close();
    rmSync(directory, { recursive: true, force: true });
  });

  async function node(name: string): Promise<string> {
    const server = createServer({ maxHeaderSize: 64 << 10 }, (call, response) => {
      headers.push(call.headers);
      response.end(name);
    }).listen(0, "127.0.0.1");
    servers.push(server);
    await once(server, "listening");
    return `127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  function get(host: string, more: Readonly<Record<string, string>> = {}, address = "127.0.0.1"): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const call = request(
      {
        host: address,
        port,
        servername: "localhost",
        ca: certificate.certificate,
        headers: { ...more, host },
        agent: false,
      },
      (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          body += part;
        });
        response.once("end", () => resolve({ status: response.statusCode, body }));
      },
    );
    call.once("error", reject);
    call.end();
    return promise;
  }

  /** A request, and the headers of its response besides the body. */
  async function send(
    host: string,
    { method = "GET", path = "/", headers: more = {}, body = "", maxHeaderSize }: SentRequest = {},
  ) {
    const all = { accept: "text/html", "content-length": String(body.length), ...more, host };
    const target = { host: "127.0.0.1", port, servername: "localhost", ca: certificate.certificate, agent: false };
    const call = request({ ...target, method, path, headers: all, ...(maxHeaderSize && { maxHeaderSize }) });
    call.end(body);
    const [response] = (await once(call, "response")) as [IncomingMessage];
    let text = "";
    for await (const part of response.setEncoding("utf8")) text += String(part);
    return { status: response.statusCode, headers: response.headers, body: text };
  }

  function serve(route: Omit<Route, "certificates" | "challenges"> & Partial<Route>): void {
    routes.set(route.appId, { certificates: [], challenges: [], ...route });
    ingress.changed();
  }

  /** A certificate of the authority for the key of the ingress. */
  async function certificateOf(host: string): Promise<HostCertificate> {
    return { host, chain: await authority.serverChain(hostKey.request, host), key: "" };
  }

  /** The certificate that clients of the host get; undefined if they do not trust it. */
  async function servedTo(host: string): Promise<PeerCertificate | undefined> {
    const socket = connectTls({ host: "127.0.0.1", port, servername: host, ca: authority.trustBundle });
    const served = await once(socket, "secureConnect").then(
      () => socket.getPeerCertificate(),
      () => undefined,
    );
    socket.destroy();
    return served;
  }

  const answers = (host: string, expected: Partial<Answer>) =>
    waitUntil(
      `${host} answers ${JSON.stringify(expected)}`,
      async () => {
        const answer = await get(host).catch(() => undefined);
        return Object.entries(expected).every(([name, value]) => answer?.[name as keyof Answer] === value);
      },
      { withinMs: 20_000, describe: () => faults.join("\n") },
    );

  test("its first process starts with the first route, and replaces the headers about the client", async () => {
    expect(haproxy.isRunning).toBe(false);
    serve({ appId: "shop", hosts: ["shop.test"], nodes: [await node("shop-1")] });
    await answers("shop.test", { status: 200, body: "shop-1" });
    expect(await get(`SHOP.test:${port}`, { "x-forwarded-for": "192.0.2.9", forwarded: "for=x" })).toMatchObject({
      status: 200,
    });
    expect(headers.at(-1)).toMatchObject({
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "https",
      "x-forwarded-host": `SHOP.test:${port}`,
    });
    expect(headers.at(-1)).not.toHaveProperty("forwarded");
  });

  /** Status of the probe of a host. */
  async function probed(host: string): Promise<number> {
    const client = connectH2(`https://127.0.0.1:${port}`, { ca: certificate.certificate });
    const stream = client.request({ ":path": "/.well-known/holdfast-ingress", ":authority": host });
    const [{ ":status": status }] = (await once(stream, "response")) as [{ ":status": number }];
    client.close();
    return status;
  }

  // biome-ignore format: a table, aligned so that it reads as one
  const forged = [
    "Forwarded", "X-Forwarded", "X-Forwarded-Server", "X-Forwarded-Prefix", "X-Forwarded-Scheme", "X-Forwarded-Ssl",
    "X-Forwarded-By", "X-Original-URL", "X-Original-Host", "X-Original-Forwarded-For", "X-Rewrite-URL", "X-Client-IP",
    "X-Cluster-Client-IP", "X-Remote-IP", "X-Remote-Addr", "True-Client-IP", "Client-IP", "CF-Connecting-IP",
    "CF-Connecting-IPv6", "Fastly-Client-IP", "Fly-Client-IP", "X-Scheme", "X-URL-Scheme", "X-Host", "Front-End-Https",
    "X-Envoy-External-Address", "X-Azure-ClientIP", "X-Appengine-User-IP", "X-ProxyUser-Ip", "X-HTTP-Host-Override",
    "Proxy", "X_Forwarded_For", "X_Forwarded-Proto", "X_Real_IP", "True_Client_IP", "X_Original_URL",
  ];

  test("headers by which proxies report clients come from the ingress alone, in each spelling", async () => {
    const sent = Object.fromEntries(forged.map((name) => [name, "192.0.2.9"]));
    const others = { "x-forwarder": "kept", "x-real": "kept", "proxy-authorization": "kept", "x-request-id": "kept" };
    const replaced = { "x-forwarded-port": "99", "x-real-ip": "192.0.2.9", "X-Forwarded-Proto": "http" };
    expect(await get("shop.test", { ...sent, ...replaced, ...others })).toMatchObject({ status: 200 });
    const { host, connection: _, ...received } = headers.at(-1) ?? {};
    expect(received).toEqual({
      "x-forwarded-for": "127.0.0.1",
      "x-forwarded-proto": "https",
      "x-forwarded-host": host,
      "x-forwarded-port": String(port),
      "x-real-ip": "127.0.0.1",
      ...others,
    });
  });

  test("a host that ends with a dot is the host without it", async () => {
    expect(await get("shop.test.")).toMatchObject({ status: 200, body: "shop-1" });
    expect(await get(`SHOP.test.:${port}`)).toMatchObject({ status: 200, body: "shop-1" });
    expect(await get("other.test.")).toMatchObject({ status: 421 });
    expect(await responseAt("shop.test.", "/a")).toMatchObject({ status: 308 });
  });

  test("headers of 23 KiB reach the program, and more are 431 with the limit", async () => {
    const sized = (bytes: number) => send("shop.test", { headers: { "x-large": "x".repeat(bytes) } });
    expect(await sized(23 << 10)).toMatchObject({ status: 200, body: "shop-1" });
    expect(headers.at(-1)?.["x-large"]).toHaveLength(23 << 10);
    const body = "The request has more than 24576 bytes of headers.\n";
    expect(await sized(25 << 10)).toMatchObject({ status: 431, body });
    // HAProxy does not parse a head that is larger than its buffer.
    expect(await sized(60 << 10)).toMatchObject({ status: 400 });
  });

  test("response headers of 29 KiB reach the client, and more are 502 with the limit", async () => {
    const large = createServer((call, response) => {
      response.setHeader("x-large", "x".repeat(Number(call.url?.slice(1)))).end("large");
    }).listen(0, "127.0.0.1");
    servers.push(large);
    await once(large, "listening");
    serve({ appId: "large", hosts: ["large.test"], nodes: [`127.0.0.1:${(large.address() as AddressInfo).port}`] });
    await waitUntil("it is served", async () => (await send("large.test", { path: "/1" })).status === 200);
    const sized = (bytes: number) => send("large.test", { path: `/${bytes}`, maxHeaderSize: 64 << 10 });
    expect(await sized(29 << 10)).toMatchObject({ status: 200 });
    expect(await sized(40 << 10)).toMatchObject({
      status: 502,
      body: "The app ended the connection, or its response is invalid or has more than 30720 bytes of headers.\n",
    });
    routes.delete("large");
    ingress.changed();
    await answers("large.test", { status: 421 });
  });

  test("a host without an app gets 421, and the probe a response of the ingress itself", async () => {
    expect(await get("other.test")).toEqual({ status: 421, body: "No app has this host.\n" });
    expect(await probed("shop.test")).toBe(204);
  });

  test("requests at the address of an app reach it with any host, until the address is another app's", async () => {
    const [first, second] = await Promise.all([node("first"), node("second")]);
    const at = (host: string) => get(host, {}, floatingIp).then(({ status, body }) => (status === 200 ? body : status));
    expect(await at("other.test")).toBe(421);
    serve({ appId: "first", hosts: ["first.test", floatingIp], nodes: [first] });
    await waitUntil("the address has the app", async () => (await at("other.test")) === "first");
    serve({ appId: "second", hosts: ["second.test"], nodes: [second] });
    await answers("second.test", { status: 200, body: "second" });
    expect(await at("second.test")).toBe("first");
    serve({ appId: "first", hosts: ["first.test"], nodes: [first] });
    serve({ appId: "second", hosts: ["second.test", floatingIp], nodes: [second] });
    await waitUntil("the address has the other app", async () => (await at("first.test")) === "second");
    routes.delete("first");
    serve({ appId: "second", hosts: ["second.test"], nodes: [second] });
    await waitUntil("no app has the address", async () => (await at("other.test")) === 421);
    routes.delete("second");
    ingress.changed();
    await answers("second.test", { status: 421 });
  });

  describe("an app with a login form", () => {
    const host = "gated.test";
    const password = randomBytes(18).toString("base64url");
    const passwordHash = createHash("sha256").update(password).digest("hex");
    const login = (key: string) => ({ key, passwordHash });
    const [firstKey, secondKey] = [randomBytes(32).toString("base64url"), randomBytes(32).toString("base64url")];
    let gated: string;
    let cookie: string;

    const tokenOf = (key: string, untilS: number) =>
      new SignJWT({})
        .setProtectedHeader({ alg: "HS256" })
        .setExpirationTime(Math.floor(Date.now() / 1_000) + untilS)
        .sign(new TextEncoder().encode(key));
    const withCookie = (token: string) => send(host, { headers: { cookie: `${loginCookie}=${token}` } });
    const signIn = (fields: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) =>
      send(host, {
        method: "POST",
        path: loginPath,
        headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
        body: new URLSearchParams({ username: "admin", return_to: "/a?b=c", ...fields }).toString(),
      });

    test("gets requests with a session alone, which the password opens", async () => {
      gated = await node("gated");
      serve({ appId: "gated", hosts: [host], nodes: [gated], login: login(firstKey) });
      await answers(host, { status: 401 });
      const form = await send(host, { path: "/a?b=c&d=%22" });
      expect(form).toMatchObject({ status: 401, headers: { "cache-control": "no-store" } });
      expect(form.body).toContain('name="return_to" value="/a?b=c&amp;d=%22"');
      expect(await send(host, { headers: { accept: "application/json" } })).toMatchObject({ body: "Sign in first.\n" });
      const opened = await signIn({ password });
      expect(opened).toMatchObject({ status: 303, headers: { location: "/a?b=c" } });
      const [set = ""] = opened.headers["set-cookie"] ?? [];
      expect(set).toMatch(/; Path=\/; Secure; HttpOnly; SameSite=Lax; Max-Age=43200$/);
      cookie = set.slice(set.indexOf("=") + 1, set.indexOf(";"));
      expect(await withCookie(cookie)).toMatchObject({ status: 200, body: "gated" });
      await answers("shop.test", { status: 200, body: "shop-1" });
    });

    test("gets no request with a session that expired, is of another key, or has no signature", async () => {
      expect(await withCookie(await tokenOf(firstKey, 60))).toMatchObject({ status: 200 });
      expect(await withCookie(await tokenOf(firstKey, -1))).toMatchObject({ status: 401 });
      expect(await withCookie(await tokenOf(secondKey, 60))).toMatchObject({ status: 401 });
      const [, payload = ""] = cookie.split(".");
      const none = Buffer.from('{"alg":"none"}').toString("base64url");
      expect(await withCookie(`${none}.${payload}.`)).toMatchObject({ status: 401 });
      expect(await withCookie(`${none}.${payload}.${cookie.split(".")[2]}`)).toMatchObject({ status: 401 });
      expect(await send(host, { method: "POST", body: "x" })).toMatchObject({ status: 401 });
    });

    test("redirects to itself alone, refuses other sites, and five wrong passwords a minute", async () => {
      expect(await signIn({ password, return_to: "//evil.test/" })).toMatchObject({ headers: { location: "/" } });
      expect(await signIn({ password }, { origin: "https://evil.test" })).toMatchObject({ status: 403 });
      const statuses: unknown[] = [];
      for (let attempt = 0; attempt < 5; attempt += 1) statuses.push((await signIn({ password: "wrong" })).status);
      expect(statuses).toEqual([401, 401, 401, 429, 429]);
      expect((await signIn({ password })).headers["retry-after"]).toMatch(/^\d+$/);
    });

    test("ends its sessions with another key, and is open without the form", async () => {
      serve({ appId: "gated", hosts: [host], nodes: [gated], login: login(secondKey) });
      await waitUntil("the session has ended", async () => (await withCookie(cookie)).status === 401);
      expect(await withCookie(await tokenOf(secondKey, 60))).toMatchObject({ status: 200 });
      serve({ appId: "gated", hosts: [host], nodes: [gated] });
      await answers(host, { status: 200, body: "gated" });
      routes.delete("gated");
      ingress.changed();
      await answers(host, { status: 421 });
      expect(faults).toEqual([]);
    });
  });

  /** The response to a request without TLS. */
  async function responseAt(host: string, path: string) {
    const call = requestHttp({ host: redirectAddress, path, headers: { host }, agent: false });
    call.end();
    const [response] = (await once(call, "response")) as [IncomingMessage];
    return { status: response.statusCode, location: response.headers.location, body: await text(response) };
  }

  test("requests without TLS are redirected to the same path", async () => {
    const location = `https://shop.test:${port}/a?b=c`;
    expect(await responseAt("shop.test", "/a?b=c")).toEqual({ status: 308, location, body: "" });
  });

  test("challenges have their responses until they end, and those of other hosts are passed on", async () => {
    const other = createServer((call, response) => response.end(`${call.headers.host} ${call.url}`));
    servers.push(other);
    other.listen(challengesPort, "127.0.0.1");
    await once(other, "listening");
    const path = "/.well-known/acme-challenge/token-1";
    const shop = { appId: "shop", hosts: ["shop.test"], nodes: [await node("shop-1")] };
    serve({ ...shop, challenges: [{ token: "token-1", keyAuthorization: "token-1.print" }] });
    const isServed = async () => (await responseAt("shop.test", path)).body === "token-1.print";
    await waitUntil("the challenge is served", isServed, { withinMs: 20_000 });
    expect(await responseAt("shop.test", `${path}0`)).toMatchObject({ status: 308 });
    expect(await responseAt("api.test", `${path}0`)).toMatchObject({ status: 200, body: `api.test ${path}0` });
    expect(await responseAt("api.test", "/")).toMatchObject({ status: 421 });
    serve(shop);
    await waitUntil("the challenge has ended", async () => (await responseAt("shop.test", path)).status === 308);
    expect(faults).toEqual([]);
  });

  test("a request without effect is repeated at another machine if its own one ends, and no other request", async () => {
    const received: string[] = [];
    const ending = createServer(({ method = "", socket }) => {
      received.push(method);
      socket.destroy();
    });
    servers.push(ending);
    ending.listen(0, "127.0.0.1");
    await once(ending, "listening");
    const { port: endingPort } = ending.address() as AddressInfo;
    const nodes = [`127.0.0.1:${endingPort}`, await node("other")];
    serve({ appId: "ending", hosts: ["ending.test"], nodes });
    await answers("ending.test", { status: 200, body: "other" });
    /** Requests until one of them came to the ending machine. */
    async function statusesOf(method: string): Promise<(number | undefined)[]> {
      received.length = 0;
      const statuses: (number | undefined)[] = [];
      while (received.length === 0) statuses.push((await send("ending.test", { method })).status);
      return statuses;
    }
    expect((await statusesOf("GET")).filter((status) => status !== 200)).toEqual([]);
    expect((await statusesOf("POST")).at(-1)).toBe(502);
    expect(received).toEqual(["POST"]);
    routes.delete("ending");
    ingress.changed();
  });

  test("HTTP/2 of clients reaches programs as HTTP/1.1, and gRPC as HTTP/2 with its trailers", async () => {
    const program = createServerH2();
    program.on("stream", (stream: ServerHttp2Stream) => {
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.pipe(stream);
    });
    program.listen(0, "127.0.0.1");
    await once(program, "listening");
    const { port: programPort } = program.address() as AddressInfo;
    serve({ appId: "grpc", hosts: ["grpc.test"], nodes: [`127.0.0.1:${programPort}`] });
    const client = connectH2(`https://127.0.0.1:${port}`, { ca: certificate.certificate });
    async function answerOf(headers: OutgoingHttpHeaders, body?: string) {
      const stream = client.request(headers, { endStream: body === undefined });
      let [text, status, trailers] = ["", 0, {}];
      stream.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      stream.once("response", (response) => {
        status = response[":status"] ?? 0;
      });
      stream.once("trailers", (received) => {
        trailers = { ...received };
      });
      if (body !== undefined) stream.end(body);
      await once(stream, "close");
      return { status, text, trailers };
    }
    expect(await answerOf({ ":authority": "shop.test" })).toMatchObject({ status: 200, text: "shop-1" });
    const grpc = { ":method": "POST", ":authority": "grpc.test", "content-type": "application/grpc", te: "trailers" };
    await waitUntil("the route is served", async () => (await answerOf(grpc, "x")).status === 200);
    expect(await answerOf(grpc, "message")).toMatchObject({ text: "message", trailers: { "grpc-status": "0" } });
    client.close();
    program.close();
    routes.delete("grpc");
    ingress.changed();
    await answers("grpc.test", { status: 421 });
    expect(faults).toEqual([]);
  });

  test("another app, another machine and no machine take effect without another process, also in the probe", async () => {
    serve({ appId: "blog", hosts: ["blog.test"], nodes: [await node("blog-1")] });
    await answers("blog.test", { status: 200, body: "blog-1" });
    serve({ appId: "blog", hosts: ["blog.test"], nodes: [await node("blog-2")] });
    await answers("blog.test", { body: "blog-2" });
    serve({ appId: "blog", hosts: ["blog.test"], nodes: [] });
    await answers("blog.test", { status: 503 });
    expect(await probed("blog.test")).toBe(503);
    routes.delete("blog");
    ingress.changed();
    await answers("blog.test", { status: 421 });
    expect(await get("shop.test")).toEqual({ status: 200, body: "shop-1" });
    expect(faults).toEqual([]);
  });

  test("a domain of a user has its own certificate, also after a renewal, until it is removed", async () => {
    const nodes = [await node("shop-1")];
    const first = await certificateOf("shop.example");
    serve({ appId: "shop", hosts: ["shop.test", "shop.example"], nodes, certificates: [first] });
    await answers("shop.example", { status: 200, body: "shop-1" });
    expect(await servedTo("shop.example")).toMatchObject({ subject: { CN: "shop.example" } });
    expect(await servedTo("other.example")).toBeUndefined();
    const next = await certificateOf("shop.example");
    serve({ appId: "shop", hosts: ["shop.test", "shop.example"], nodes, certificates: [next] });
    const { serialNumber } = new X509Certificate(next.chain);
    const isRenewed = async () => (await servedTo("shop.example"))?.serialNumber === serialNumber;
    await waitUntil("the other certificate is served", isRenewed, { withinMs: 20_000 });
    serve({ appId: "shop", hosts: ["shop.test"], nodes });
    await answers("shop.example", { status: 421 });
    const isRemoved = async () => (await servedTo("shop.example")) === undefined;
    await waitUntil("its certificate is removed", isRemoved, { withinMs: 20_000 });
    expect(faults).toEqual([]);
  });

  test("another certificate is served to new connections, and open ones remain", async () => {
    serve({ appId: "shop", hosts: ["shop.test"], nodes: [await node("renewed")] });
    await answers("shop.test", { status: 200, body: "renewed" });
    const socket = connectTls({ host: "127.0.0.1", port, servername: "localhost", ca: certificate.certificate });
    let received = "";
    socket.setEncoding("utf8").on("data", (text: string) => {
      received += text;
    });
    const askAgain = async () => {
      received = "";
      socket.write("GET / HTTP/1.1\r\nhost: shop.test\r\n\r\n");
      await waitUntil("the open connection gets a response", async () => received.includes("renewed"));
      expect(received).toMatch(/^HTTP\/1\.1 200 /);
    };
    await askAgain();
    for (const _ of [1, 2]) {
      const made = await createTestCertificate();
      certificate = { key: made.key, certificate: made.cert };
      ingress.changed();
      // A client that trusts the new certificate alone.
      await answers("shop.test", { status: 200 });
      await askAgain();
    }
    socket.destroy();
    expect(faults).toEqual([]);
  });

  test("a process that ends is replaced by one with the newest certificate and all routes", async () => {
    const own = await certificateOf("www.example");
    serve({ appId: "shop", hosts: ["shop.test", "www.example"], nodes: [await node("shop-1")], certificates: [own] });
    await answers("www.example", { status: 200 });
    await haproxy.stop();
    ingress.changed();
    await answers("shop.test", { status: 200, body: "shop-1" });
    expect(await servedTo("www.example")).toMatchObject({ subject: { CN: "www.example" } });
  });
});
