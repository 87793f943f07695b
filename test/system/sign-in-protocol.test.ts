import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as client from "openid-client";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { fetchOver, platformAgent } from "@holdfast/testing/network/browser.ts";
import { programOf } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AuthJson, createSignInUnderTest } from "./sign-in/sign-in-under-test.ts";

interface ClientJson {
  readonly client_id: string;
  readonly client_secret: string;
}

const secondIssuer = "127.0.0.3";

/** Environment of a process. */
function environmentOf(pid: number): Record<string, string> {
  const entries = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
  return Object.fromEntries(
    entries.flatMap((entry) => (entry.includes("=") ? [entry.split(/=(.*)/s).slice(0, 2)] : [])),
  );
}

describe("the protocol of an app's issuer", () => {
  const fixture = createSignInUnderTest();
  let issuer = "";
  let directory = "";
  let replica: ReturnType<typeof spawn> | undefined;

  beforeAll(async () => {
    await fixture.start();
    ({ issuer_url: issuer } = await fixture.enable());
  });
  afterAll(async () => {
    replica?.kill("SIGKILL");
    await fixture.remove();
    if (directory !== "") rmSync(directory, { recursive: true, force: true });
  });

  const sourceAt = (names: Record<string, string> = {}, from = "127.0.0.1") =>
    platformAgent(fixture.platform, { names, from });
  const at = (address: string) => ({ names: { [new URL(issuer).hostname]: address } });

  async function post(path: string, form: Record<string, string>, names: Record<string, string> = {}, from?: string) {
    const dispatcher = sourceAt(names, from);
    const response = await request(`${issuer}${path}`, {
      dispatcher,
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams(form).toString(),
    });
    const text = await response.body.text();
    await dispatcher.close();
    return { status: response.statusCode, json: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>) };
  }

  it("signs one of 50 concurrent requests in by the link of a mail", async () => {
    const config = await fixture.discover();
    const browser = fixture.browser();
    const started = await fixture.begin(browser, config);
    await browser.submit(started.page, { email: "quinn@example.com" });
    const { link } = await fixture.mailTo("quinn@example.com");
    const confirmPage = await browser.get(link);
    const tries = await Promise.all(
      Array.from({ length: 50 }, () => browser.submit(confirmPage, {}, { stopAt: fixture.callback })),
    );
    expect(tries.filter(({ url }) => url.startsWith(fixture.callback))).toHaveLength(1);
  });

  it("ends refresh tokens by revocation, and sessions by logout, which redirects only to registered URIs", async () => {
    const config = await fixture.discover();
    const browser = fixture.browser();
    const first = await fixture.signIn("rosa@example.com", {}, browser);
    await client.tokenRevocation(config, first.refresh_token ?? "");
    await expect(client.refreshTokenGrant(config, first.refresh_token ?? "")).rejects.toMatchObject({
      error: "invalid_grant",
    });
    expect((await post("/revoke", { client_id: fixture.appId, token: "nobody-has-this" })).status).toBe(200);
    // The session still exists.
    const silent = await fixture.begin(browser, config, { prompt: "none" });
    const renewed = await fixture.tokensOf(config, silent, silent.page);
    const foreignUrl = client.buildEndSessionUrl(config, { post_logout_redirect_uri: "https://evil.example/" });
    const foreign = await browser.get(foreignUrl.href);
    expect(foreign.text).toContain("Sign out?");
    expect(String(foreign.headers["content-security-policy"])).not.toContain("evil.example");
    const loggedOut = await browser.get(`${issuer}/logout`);
    expect(loggedOut.text).toContain("Sign out?");
    const out = client.buildEndSessionUrl(config, {
      id_token_hint: renewed.id_token ?? "",
      post_logout_redirect_uri: "https://shop.example",
      state: "state",
    });
    expect((await browser.get(out.href, { stopAt: "https://shop.example" })).url).toBe(
      "https://shop.example/?state=state",
    );
    const signedOut = await fixture.begin(browser, config, { prompt: "none" });
    expect(new URL(signedOut.page.url).searchParams.get("error")).toBe("login_required");
    await expect(client.refreshTokenGrant(config, renewed.refresh_token ?? "")).rejects.toMatchObject({
      error: "invalid_grant",
    });
    await expect(client.fetchUserInfo(config, renewed.access_token, renewed.claims()?.sub ?? "")).rejects.toThrow();
  });

  it("accepts a confidential client by Basic and by post, without PKCE only with a nonce", async () => {
    const { rest } = fixture.platform;
    const callback = "https://web.example/cb";
    const web = expectStatus(
      await rest.post<ClientJson>(fixture.path("/clients"), {
        name: "web",
        type: "confidential",
        redirect_uris: [callback],
        require_pkce: false,
        allowed_origins: ["https://web.example"],
      }),
      201,
    ).json;
    const browser = fixture.browser();
    const discovered = await fixture.discover();
    const configOf = (secret: string, way: typeof client.ClientSecretBasic) => {
      const config = new client.Configuration(discovered.serverMetadata(), web.client_id, secret, way(secret));
      const dispatcher = sourceAt();
      config[client.customFetch] = fetchOver(dispatcher);
      return config;
    };
    await waitUntil("the issuer knows the client", async () => {
      const page = await browser.get(`${issuer}/authorize?client_id=${web.client_id}`);
      return page.text.includes("address that it did not register");
    });
    const begin = async (more: Record<string, string>, stopAt = callback) => {
      const parameters = {
        client_id: web.client_id,
        redirect_uri: callback,
        response_type: "code",
        scope: "openid",
        ...more,
      };
      return browser.get(`${issuer}/authorize?${new URLSearchParams(parameters).toString()}`, { stopAt });
    };
    const bare = await begin({ state: "s" });
    expect(new URL(bare.url).searchParams.get("error")).toBe("invalid_request");
    const page = await begin({ state: "s", nonce: "n" });
    const codePage = await browser.submit(page, { email: "sara@example.com" });
    const { code } = await fixture.mailTo("sara@example.com");
    const lastPage = await browser.submit(codePage, { code }, { stopAt: callback });
    const checks = { expectedNonce: "n", expectedState: "s", idTokenExpected: true };
    const tokens = await client.authorizationCodeGrant(
      configOf(web.client_secret, client.ClientSecretBasic),
      new URL(lastPage.url),
      checks,
    );
    expect(tokens.claims()).toMatchObject({ aud: web.client_id, nonce: "n" });
    expect(tokens.refresh_token).toBeUndefined();
    const silent = await begin({ state: "s", nonce: "n", prompt: "none" });
    const { json } = await rest.post<ClientJson>(fixture.path(`/clients/${web.client_id}/rotate-secret`), {});
    await waitUntil("the new secret counts", async () => {
      const body = {
        client_id: web.client_id,
        client_secret: json.client_secret,
        grant_type: "refresh_token",
        refresh_token: "x",
      };
      return (await post("/token", body)).json["error"] === "invalid_grant";
    });
    const old = configOf(web.client_secret, client.ClientSecretPost);
    await expect(client.authorizationCodeGrant(old, new URL(silent.url), checks)).rejects.toMatchObject({
      error: "invalid_client",
    });
    const fresh = configOf(json.client_secret, client.ClientSecretPost);
    expect((await client.authorizationCodeGrant(fresh, new URL(silent.url), checks)).claims()?.sub).toBe(
      tokens.claims()?.sub,
    );
  });

  it("changes the lists of a client by the command line, which refuses what would never match", async () => {
    const { rest } = fixture.platform;
    const update = (...args: string[]) => fixture.cli("auth", "clients", "update", "shop", fixture.appId, ...args);
    const wildcard = await update("--redirect", "https://*.shop.example/cb");
    expect(wildcard).toMatchObject({ code: 2, stderr: expect.stringContaining("redirect_uris[0]") });
    expect(wildcard.stderr).toContain("must not contain *");
    expect(await update()).toMatchObject({ code: 2, stderr: expect.stringContaining("--post-logout") });
    const post = ["https://shop.example", "com.example.shop:/bye"];
    const changed = await update(
      ...post.flatMap((uri) => ["--post-logout", uri]),
      "--origin",
      "https://shop.example",
      "--origin",
      "https://www.shop.example",
    );
    expect(changed).toMatchObject({ code: 0 });
    const { clients } = (await rest.get<{ clients: Record<string, unknown>[] }>(fixture.path("/clients"))).json;
    expect(clients.find((each) => each["client_id"] === fixture.appId)).toMatchObject({
      redirect_uris: [fixture.callback],
      post_logout_redirect_uris: post,
      allowed_origins: ["https://shop.example", "https://www.shop.example"],
    });
  });

  it("serves scripts of the app's origins, and its metadata to any origin", async () => {
    const dispatcher = sourceAt();
    const allowedOf = async (path: string, origin: string, method: "GET" | "OPTIONS" = "OPTIONS") => {
      const response = await request(`${issuer}${path}`, { dispatcher, method, headers: { origin } });
      await response.body.dump();
      return response.headers["access-control-allow-origin"];
    };
    expect(await allowedOf("/jwks.json", "https://any.example", "GET")).toBe("*");
    expect(await allowedOf("/token", "https://shop.example")).toBe("https://shop.example");
    expect(await allowedOf("/token", "https://evil.example")).toBeUndefined();
    expect(await allowedOf("/userinfo", "https://evil.example")).toBeUndefined();
    expect(await allowedOf("/authorize", "https://shop.example")).toBeUndefined();
    await dispatcher.close();
  });

  it("continues at any replica a sign-in that another began, and counts failures over all replicas", async () => {
    directory = mkdtempSync(join(tmpdir(), "issuer-"));
    const { issuer: firstIssuer = 0 } = fixture.platform.processes();
    const ofFirst = environmentOf(firstIssuer);
    cpSync(ofFirst["HOLDFAST_ISSUER_IDENTITY_DIR"] ?? "", join(directory, "identity"), { recursive: true });
    const port = new URL(issuer).port;
    replica = spawn(process.execPath, [programOf(firstIssuer)], {
      env: {
        ...ofFirst,
        HOLDFAST_ISSUER_LISTEN: `${secondIssuer}:${port}`,
        HOLDFAST_ISSUER_DIR: directory,
        HOLDFAST_ISSUER_IDENTITY_DIR: join(directory, "identity"),
        HOLDFAST_ISSUER_METRICS: join(directory, "metrics.sock"),
      },
      stdio: "ignore",
    });
    const second = await waitUntil("the second replica serves", () =>
      fixture.discover(at(secondIssuer)).catch(() => undefined),
    );
    const first = await fixture.discover();
    // The cookies belong to the browser; the name now resolves to the other replica.
    const browser = fixture.browser(at(secondIssuer));
    const codePage = await fixture.begin(browser, second);
    const page = await browser.submit(codePage.page, { email: "tina@example.com" });
    const { code } = await fixture.mailTo("tina@example.com");
    const otherBrowser = fixture.browser();
    for (const [name, value] of browser.cookies) otherBrowser.cookies.set(name, value);
    const lastPage = await otherBrowser.submit(page, { code }, { stopAt: fixture.callback });
    const tokens = await fixture.tokensOf(second, codePage, lastPage);
    const next = await client.refreshTokenGrant(first, tokens.refresh_token ?? "");
    expect((await client.refreshTokenGrant(second, next.refresh_token ?? "")).claims()?.sub).toBe(tokens.claims()?.sub);

    const guesser = "127.0.0.22";
    const guess = { client_id: fixture.appId, grant_type: "authorization_code", code: "guessed" };
    const host = new URL(issuer).hostname;
    for (let times = 0; times < 25; times += 1)
      for (const address of ["127.0.0.1", secondIssuer]) await post("/token", guess, { [host]: address }, guesser);
    const refused = await Promise.all(
      ["127.0.0.1", secondIssuer].map(async (address) => {
        await post("/token", guess, { [host]: address }, guesser);
        return (await post("/token", guess, { [host]: address }, guesser)).status;
      }),
    );
    expect(refused).toEqual([429, 429]);
    const metrics = await request("http://metrics/metrics", {
      dispatcher: new Agent({ connect: { socketPath: join(directory, "metrics.sock") } }),
    });
    expect(await metrics.body.text()).toMatch(
      /holdfast_issuer_request_seconds_count\{route="\/token",status="429"\} \d+/,
    );
  });

  it("signs users in while the app uses every connection that it can get", async () => {
    const login = { password: fixture.users.password };
    const sessions: Awaited<ReturnType<typeof openPostgresql>>[] = [];
    try {
      for (;;) sessions.push(await openPostgresql(fixture.platform, fixture.users.connection, login));
    } catch (error) {
      expect(String(error)).toMatch(/remaining connection slots|too many/);
    }
    expect(sessions.length).toBeGreaterThan(5);
    const signedIn = await fixture.signIn("uma@example.com");
    expect(signedIn.claims()?.["email"]).toBe("uma@example.com");
    await Promise.all(sessions.map((each) => each.end()));
  });

  it("creates a user once for one Idempotency-Key, and reports that to another", async () => {
    const { rest } = fixture.platform;
    const make = (key: string) =>
      rest.post<{ id: string }>(
        fixture.path("/users"),
        { email: "vera@example.com" },
        { headers: { "idempotency-key": key } },
      );
    const first = expectStatus(await make("one"), 201).json;
    expect(expectStatus(await make("one"), 201).json.id).toBe(first.id);
    expect((await make("two")).json).toMatchObject({ code: "user_exists" });
  });

  it("reports a mail server that rejects mails, and its recovery", async () => {
    const { rest } = fixture.platform;
    const password = String(fixture.smtp["password"]);
    await rest.patch(fixture.path(), { smtp: { ...fixture.smtp, password: "wrong" } });
    const health = async () =>
      (await rest.get<AuthJson & { health: { status: string; reason?: string } }>(fixture.path())).json.health;
    /** Requests a mail at each poll. */
    const untilMails = (what: string, prefix: string, isSo: (now: { status: string; reason?: string }) => boolean) => {
      let count = 0;
      return waitUntil(
        what,
        async () => {
          const browser = fixture.browser();
          const { page } = await fixture.begin(browser, await fixture.discover());
          await browser.submit(page, { email: `${prefix}${(count += 1)}@example.com` });
          return isSo(await health());
        },
        { everyMs: 1_000, withinMs: 30_000 },
      );
    };
    await untilMails("the mail server is known to refuse", "w", ({ reason = "" }) =>
      reason.includes("refused the user name"),
    );
    const { json } = await rest.get<{ events: object[] }>("/events?type=auth.mail_failing");
    expect(json.events).toHaveLength(1);
    await rest.patch(fixture.path(), { smtp: { ...fixture.smtp, password } });
    await untilMails("mails are sent again", "x", ({ status }) => status === "healthy");
  });
});
