import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createRemoteJWKSet, customFetch, decodeJwt, decodeProtectedHeader, jwtVerify } from "jose";
import * as client from "openid-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { type Browser, fetchOver, platformAgent } from "@holdfast/testing/network/browser.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AuthJson, createSignInUnderTest } from "./sign-in/sign-in-under-test.ts";

const tables = [
  "users",
  "identities",
  "sessions",
  "refresh_tokens",
  "mfa_totp",
  "mfa_recovery_codes",
  "login_tokens",
  "oauth_codes",
  "events",
];

describe("sign-in for an app", () => {
  const fixture = createSignInUnderTest();
  let anns: Browser;
  let ann = "";

  beforeAll(() => fixture.start());
  afterAll(() => fixture.remove());

  const verified = async (token: string) => {
    const { issuer_url: issuer } = (await fixture.platform.rest.get<AuthJson>(fixture.path())).json;
    const dispatcher = platformAgent(fixture.platform);
    const keys = createRemoteJWKSet(new URL(`${issuer}/jwks.json`), {
      [customFetch]: fetchOver(dispatcher),
    });
    return jwtVerify(token, keys, { issuer });
  };

  it("is rejected with its faults, and is Active once it is complete", async () => {
    const { rest } = fixture.platform;
    expect((await rest.get(fixture.path())).json["code"]).toBe("auth_not_enabled");
    const body = { attachment_id: fixture.attachmentId, issuer_domain_choice: "fallback" };
    expect((await rest.post(fixture.path("/enable"), body)).json["code"]).toBe("smtp_required");
    const forbidden = { ...fixture.smtp, port: 2_526 };
    expect((await rest.post(fixture.path("/enable"), { ...body, smtp: forbidden })).status).toBe(400);
    const injected = { ...fixture.smtp, from_name: "Shop\r\nBcc: x@example.com" };
    expect((await rest.post(fixture.path("/enable"), { ...body, smtp: injected })).status).toBe(400);
    const custom = { ...body, smtp: fixture.smtp, issuer_domain_choice: "custom" };
    expect((await rest.post(fixture.path("/enable"), custom)).json["code"]).toBe("custom_domain_not_verified");

    const theme = { display_name: "The Shop", brand_color: "#A0c040", logo_url: "https://shop.example/logo.png" };
    const response = await rest.post(fixture.path("/enable"), { ...body, smtp: fixture.smtp, theme });
    expect(expectStatus(response, 201).json).toMatchObject({
      auth: { status: "ProvisioningSchema", schema_version_applied: null, idp_providers: [] },
      signing_keys: [{ algorithm: "RS256", status: "active" }],
    });
    expect(JSON.stringify(response.json)).not.toContain(String(fixture.smtp["password"]));
    const repeated = await rest.post(fixture.path("/enable"), { ...body, smtp: fixture.smtp });
    expect(repeated.json["code"]).toBe("auth_already_enabled");
    const active = await waitUntil(
      "the sign-in is active",
      async () => {
        const { json } = await rest.get<AuthJson>(fixture.path());
        if (json.status === "Failed") throw new Error(json.failure_reason);
        return json.status === "Active" ? json : undefined;
      },
      { withinMs: 60_000 },
    );
    expect(active).toMatchObject({ schema_version_applied: "2", health: { status: "healthy" } });
    expect(active.issuer_url).toMatch(/^https:\/\/auth-[0-9a-f]{12}\.local\.holdfast\.test:\d+$/);
  });

  it("signs a user in by the code of a mail, with verifiable tokens", async () => {
    anns = fixture.browser();
    const signedIn = await fixture.signIn("ann@example.com", {}, anns);
    const claims = signedIn.claims();
    ann = claims?.sub ?? "";
    expect(claims).toMatchObject({ email: "ann@example.com", email_verified: true, amr: ["otp"] });
    const { payload, protectedHeader } = await verified(signedIn.access_token);
    expect(protectedHeader).toMatchObject({ alg: "RS256", typ: "at+jwt" });
    expect(payload).toMatchObject({ sub: claims?.sub, aud: fixture.appId, client_id: fixture.appId });
    const config = await fixture.discover();
    const info = await client.fetchUserInfo(config, signedIn.access_token, claims?.sub ?? "");
    expect(info).toEqual({ sub: claims?.sub, email: "ann@example.com", email_verified: true });
    const refreshed = await client.refreshTokenGrant(config, signedIn.refresh_token ?? "");
    expect(refreshed.refresh_token).not.toBe(signedIn.refresh_token);
    expect(refreshed.claims()?.sub).toBe(claims?.sub);
  });

  it("signs in by the link, which mail scanners do not use up, in the same browser alone", async () => {
    const browser = fixture.browser();
    const config = await fixture.discover();
    const started = await fixture.begin(browser, config);
    expect(started.page.headers["content-security-policy"]).toContain("frame-ancestors 'none'");
    expect(started.page.headers["content-security-policy"]).not.toContain("unsafe");
    await browser.submit(started.page, { email: "Bob@Example.com " });
    const { link } = await fixture.mailTo("bob@example.com");
    const otherBrowser = await fixture.browser().get(link);
    expect(otherBrowser.text).toContain("Type the code from the mail there");
    expect(otherBrowser.text).not.toContain("<form");
    for (let times = 0; times < 3; times += 1) await browser.get(link);
    const confirmPage = await browser.get(link);
    const lastPage = await browser.submit(confirmPage, {}, { stopAt: fixture.callback });
    const signedIn = await fixture.tokensOf(config, started, lastPage);
    expect(signedIn.claims()?.["email"]).toBe("bob@example.com");
    // A signed-in user gets no prompt, and an old page gets an error.
    const second = await fixture.begin(browser, config, { prompt: "none" });
    expect((await fixture.tokensOf(config, second, second.page)).claims()?.sub).toBe(signedIn.claims()?.sub);
    const fresh = await fixture.begin(fixture.browser(), config, { prompt: "none" });
    expect(new URL(fresh.page.url).searchParams.get("error")).toBe("login_required");
  });

  it("accepts five wrong codes and no sixth", async () => {
    const browser = fixture.browser();
    const started = await fixture.begin(browser, await fixture.discover());
    let page = await browser.submit(started.page, { email: "carl@example.com" });
    const { code } = await fixture.mailTo("carl@example.com");
    const wrong = code === "000000" ? "000001" : "000000";
    for (let times = 0; times < 5; times += 1) page = await browser.submit(page, { code: wrong });
    expect(page.text).toContain("The mail has expired or was used");
    const late = await browser.get(`${new URL(started.page.url).href}/code`);
    expect((await browser.submit(late, { code })).text).toContain("The mail has expired or was used");
  });

  it("accepts one of 50 concurrent uses of an authorization code, and of a refresh token", async () => {
    // A source with this many failures in a minute is delayed, so this one uses a separate address.
    const config = await fixture.discover({ from: "127.0.0.21" });
    const browser = fixture.browser();
    const started = await fixture.begin(browser, config);
    const codePage = await browser.submit(started.page, { email: "dora@example.com" });
    const { code } = await fixture.mailTo("dora@example.com");
    const lastPage = await browser.submit(codePage, { code }, { stopAt: fixture.callback });
    const tries = await Promise.allSettled(
      Array.from({ length: 50 }, () => fixture.tokensOf(config, started, lastPage)),
    );
    expect(tries.filter(({ status }) => status === "fulfilled")).toHaveLength(1);

    const { refresh_token: token = "" } = await fixture.signIn("edna@example.com");
    const otherSource = await fixture.discover({ from: "127.0.0.23" });
    const all = await Promise.all(Array.from({ length: 50 }, () => client.refreshTokenGrant(otherSource, token)));
    const successors = new Set(all.map(({ refresh_token: next }) => next));
    expect(successors.size).toBe(1);
    const [next = ""] = successors;
    const later = await client.refreshTokenGrant(otherSource, next);
    // Two generations older: someone has a copy, and all sessions are ended.
    await expect(client.refreshTokenGrant(otherSource, token)).rejects.toMatchObject({ error: "invalid_grant" });
    await expect(client.refreshTokenGrant(otherSource, later.refresh_token ?? "")).rejects.toMatchObject({
      error: "invalid_grant",
    });
  });

  it("rotates its key without ending sessions, and in an emergency ends all of them", async () => {
    const before = await fixture.signIn("fred@example.com");
    const config = await fixture.discover();
    const kidOf = (token: string) => decodeProtectedHeader(token).kid;
    const published = async () => {
      const { issuer_url: issuer } = (await fixture.platform.rest.get<AuthJson>(fixture.path())).json;
      const page = await fixture.browser().get(`${issuer}/jwks.json`);
      return (JSON.parse(page.text) as { keys: { kid: string }[] }).keys.map(({ kid }) => kid);
    };
    const known = await published();
    expect(known).toHaveLength(2);
    const { signing_key: key } = expectStatus(
      await fixture.platform.rest.post<{ signing_key: { kid: string } }>(fixture.path("/rotate-key"), {}),
      200,
    ).json;
    // A verifier that cached the JWKS before has the key already.
    expect(known).toContain(key.kid);
    const after = await waitUntil("the new key signs", async () => {
      const refreshed = await client.refreshTokenGrant(config, before.refresh_token ?? "");
      return kidOf(refreshed.access_token) === key.kid ? refreshed : undefined;
    });
    await verified(before.access_token);
    await verified(after.access_token);
    await fixture.platform.rest.post(fixture.path("/rotate-key?emergency=true"), {});
    await waitUntil("nothing of before is published", async () => !(await published()).some((kid) => kid === key.kid));
    await expect(verified(after.access_token)).rejects.toThrow();
    await expect(fixture.platform.rest.get(fixture.path("/keys"))).resolves.toMatchObject({ status: 200 });
  });

  it("lists users for their owner, ends sessions, and erases users from nine tables", async () => {
    const signedIn = await fixture.signIn("gina@example.com");
    const config = await fixture.discover();
    const { rest } = fixture.platform;
    type Rows<N extends string> = Record<N, { id: string }[]>;
    const found = await rest.get<Rows<"users">>(fixture.path("/users?email=Gina@example.com"));
    const [gina] = expectStatus(found, 200).json.users;
    expect(gina?.id).toBe(signedIn.claims()?.sub);
    const sessions = (await rest.get<Rows<"sessions">>(fixture.path(`/users/${gina?.id}/sessions`))).json.sessions;
    expect(sessions).toHaveLength(1);
    const ended = async (path: string, body: object = {}) => {
      const { task_id: id } = expectStatus(await rest.post<{ task_id: string }>(path, body), 202).json;
      return waitUntil(`${path} is done`, async () => {
        const { json } = await rest.get<{ status: string; result: unknown }>(`/tasks/${id}`);
        return json.status === "completed" ? json.result : undefined;
      });
    };
    expect(await ended(fixture.path(`/sessions/${sessions[0]?.id}/revoke`))).toEqual({ revoked: true });
    await expect(client.refreshTokenGrant(config, signedIn.refresh_token ?? "")).rejects.toMatchObject({
      error: "invalid_grant",
    });
    expect(await ended(fixture.path("/users/delete"), { email: "nobody@example.com" })).toEqual({ erased: false });
    const erased = await fixture.cli("auth", "users", "delete", "shop", "--email", "gina@example.com", "--yes");
    expect(erased).toMatchObject({ code: 0 });
    expect(erased.stdout).toContain("true");

    const login = { password: fixture.users.password };
    const sql = await openPostgresql(fixture.platform, fixture.users.connection, login);
    const remaining = await sql.query("SELECT email FROM _mdb_auth.users WHERE email LIKE 'gina%'");
    expect(remaining.rows).toEqual([]);
    for (const forbidden of [
      "SELECT FROM _mdb_auth.sessions",
      "DELETE FROM _mdb_auth.users",
      "DROP SCHEMA _mdb_auth CASCADE",
    ])
      await expect(sql.query(forbidden)).rejects.toThrow(/permission denied|must be owner/);
    const names = await sql.query<{ name: string }>(
      "SELECT relname AS name FROM pg_class WHERE relnamespace = '_mdb_auth'::regnamespace AND relkind = 'r' ORDER BY 1",
    );
    expect(names.rows.map(({ name }) => name)).toEqual(tables.toSorted());
    await sql.end();

    const { events } = (await rest.get<{ events: { type: string; data: object }[] }>("/events?type=auth.user.deleted"))
      .json;
    expect(JSON.stringify(events)).not.toContain("gina");
    const stored = JSON.stringify([...(await dumpEtcd(fixture.platform.directory))]);
    const logs = join(fixture.platform.directory, "log");
    const logged = readdirSync(logs)
      .map((file) => readFileSync(join(logs, file), "utf8"))
      .join("\n");
    for (const planted of [
      "gina@example.com",
      "ann@example.com",
      String(fixture.smtp["password"]),
      signedIn.access_token,
    ]) {
      expect(stored).not.toContain(planted);
      expect(logged).not.toContain(planted);
    }
  });

  it("is not affected by changes of the database's owner", async () => {
    const { platform, users, smtp } = fixture;
    const { rest } = platform;
    const config = await fixture.discover();
    const { refresh_token: token = "" } = await fixture.signIn("kate@example.com");
    const sql = await openPostgresql(platform, users.connection, { password: users.password });
    await sql.query("CREATE SCHEMA evil; CREATE TABLE evil.users (id int)");
    await sql.query("ALTER DATABASE defaultdb SET search_path = evil");
    await sql.query("ALTER DATABASE defaultdb SET default_transaction_read_only = on");
    killImmediately(platform.processes().issuer ?? 0);
    const refreshed = await waitUntil("a refresh works under their settings", () =>
      client.refreshTokenGrant(config, token).catch(() => undefined),
    );
    expect(refreshed.refresh_token).toBeDefined();
    await sql.query("SET default_transaction_read_only = off; ALTER DATABASE defaultdb RESET ALL");
    await sql.query("CREATE DATABASE squatted");
    await sql.end();
    const ownerSession = await openPostgresql(
      platform,
      { ...users.connection, database: "squatted" },
      { password: users.password },
    );
    await ownerSession.query("CREATE SCHEMA _mdb_auth; CREATE TABLE _mdb_auth.users (email text)");
    await ownerSession.end();
    const { id } = expectStatus(await rest.post<{ id: string }>("/app-services", { name: "squatted" }), 201).json;
    const attached = { service_id: users.service.id, database_name: "squatted" };
    const attachment = await rest.post<{ id: string }>(`/app-services/${id}/attachments`, attached);
    const body = { attachment_id: attachment.json.id, smtp, redirect_uris: ["https://shop.example/cb"] };
    expectStatus(await rest.post(`/app-services/${id}/auth/enable`, body), 201);
    const failed = await waitUntil("it failed", async () => {
      const { json } = await rest.get<AuthJson>(`/app-services/${id}/auth`);
      return json.status === "Failed" ? json : undefined;
    });
    expect(failed.failure_reason).toMatch(/^schema: .*_mdb_auth is not the platform's; drop or rename it/);
    expectStatus(await rest.call("DELETE", `/app-services/${id}`), 204);
  });

  it("rejects forms of other sites, unknown names, codes without their verifier, and guesses", async () => {
    const browser = fixture.browser();
    const config = await fixture.discover();
    const started = await fixture.begin(browser, config);
    const foreign = { ...started.page, url: started.page.url };
    const crossSite = await browser.submit(foreign, { email: "lena@example.com" }, { origin: "https://evil.example" });
    expect(crossSite.status).toBe(403);
    const codePage = await browser.submit(started.page, { email: "lena@example.com" });
    const { code } = await fixture.mailTo("lena@example.com");
    const lastPage = await browser.submit(codePage, { code }, { stopAt: fixture.callback });
    const withoutVerifier = client.authorizationCodeGrant(config, new URL(lastPage.url), {
      expectedNonce: started.nonce,
      expectedState: started.state,
    });
    await expect(withoutVerifier).rejects.toMatchObject({ error: "invalid_grant" });
    const { issuer_url: issuer } = (await fixture.platform.rest.get<AuthJson>(fixture.path())).json;
    expect(
      (await browser.get(`https://127.0.0.1:${new URL(issuer).port}/jwks.json`).catch(() => undefined))?.status ?? 421,
    ).toBe(421);
    const stolen = new URL(
      (await fixture.begin(fixture.browser(), config, { redirect_uri: "https://evil.example/cb" })).page.url,
    );
    expect(stolen.origin).toBe(issuer);
  });

  it("is not served once it is disabled, and is unchanged when it is enabled again", async () => {
    const { rest } = fixture.platform;
    const { issuer_url: issuer } = (await rest.get<AuthJson>(fixture.path())).json;
    const inUse = await rest.call("DELETE", `/app-services/${fixture.appId}/attachments/${fixture.attachmentId}`);
    expect(inUse.json["code"]).toBe("attachment_in_use");
    const service = `/managed-services/${fixture.users.service.id}`;
    for (const path of [service, `${service}/databases/defaultdb`])
      expect((await rest.call("DELETE", path)).json["code"]).toBe("attachment_in_use");
    expect((await rest.post(fixture.path("/disable"), {})).json["status"]).toBe("Disabled");
    const isUnserved = async () => (await fixture.browser().get(`${issuer}/jwks.json`)).status === 421;
    await waitUntil("the host is served no more", () => isUnserved().catch(() => true));
    const body = { attachment_id: fixture.attachmentId, smtp: fixture.smtp };
    expectStatus(await rest.post(fixture.path("/enable"), body), 201);
    const isActive = async () => (await rest.get<AuthJson>(fixture.path())).json.status === "Active";
    await waitUntil("it is active again", isActive, { withinMs: 60_000 });
    const config = await fixture.discover();
    const started = await fixture.begin(anns, config, { prompt: "none" });
    expect((await fixture.tokensOf(config, started, started.page)).claims()?.sub).toBe(ann);
  });

  it("continues after kill -9 of controller, issuer and engine", async () => {
    const config = await fixture.discover();
    const { refresh_token: token = "", ...signedIn } = await fixture.signIn("iris@example.com");
    const { controllers, issuer, machines } = fixture.platform.processes();
    for (const pid of [...controllers, issuer, machines[0]?.engine]) if (pid !== undefined) killImmediately(pid);
    const refreshed = await waitUntil("a refresh works again", () =>
      client.refreshTokenGrant(config, token).catch(() => undefined),
    );
    expect(decodeJwt(refreshed.access_token).sub).toBe(decodeJwt(signedIn.access_token).sub);
  });
});
