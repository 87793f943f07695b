import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import type { Browser } from "@holdfast/testing/network/browser.ts";
import { startTestDnsServer, type TestDnsServer } from "@holdfast/testing/network/dns-zone.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { type IdentityProvider, startIdentityProvider } from "@holdfast/testing/servers/identity-provider.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import * as client from "openid-client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AuthJson, createSignInUnderTest } from "./sign-in/sign-in-under-test.ts";

interface DomainJson {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly verification: { readonly type: string; readonly name: string; readonly value: string };
}

const domain = "login.shop.example";

describe("an app's sign-in providers and domains", () => {
  const fixture = createSignInUnderTest();
  const texts = new Map<string, string>();
  let dns: TestDnsServer;
  let provider: IdentityProvider;

  beforeAll(async () => {
    dns = await startTestDnsServer((name) => {
      const text = texts.get(name);
      return text === undefined ? [] : [{ type: "TXT", name, data: [text] }];
    });
    await fixture.start({ HOLDFAST_DOMAIN_RESOLVERS: dns.address });
    const { issuer_url: issuer } = await fixture.enable();
    provider = await startIdentityProvider(String(fixture.smtp["host"]), [
      `${issuer}/callback/oidc`,
      `https://${domain}:${new URL(issuer).port}/callback/oidc`,
    ]);
  });
  afterAll(async () => {
    await provider?.close();
    await fixture.remove();
    await dns?.close();
  });

  const providerOptions = () => ({ authorities: [provider.ca], names: { [domain]: "127.0.0.1" } });
  const linkOf = (text: string) => /href="([^"]*with-oidc[^"]*)"/.exec(text)?.[1] ?? "";

  /** Signs in with the other provider; returns the last page. */
  async function through(browser: Browser, config: client.Configuration, more: Record<string, string> = {}) {
    const started = await fixture.begin(browser, config, more);
    const link = new URL(linkOf(started.page.text), started.page.url).href;
    return { started, back: await browser.get(link, { stopAt: fixture.callback }) };
  }

  it("accepts a complete provider, stores its secret, and calls no address that apps may not reach", async () => {
    const { rest } = fixture.platform;
    const put = (name: string, body: object) => rest.call("PUT", fixture.path(`/idp-providers/${name}`), { body });
    const oidc = { client_id: provider.clientId, client_secret: provider.clientSecret, issuer_url: provider.issuer };
    expect((await put("github", oidc)).status).toBe(400);
    expect((await put("oidc", { ...oidc, issuer_url: "http://login.example.com" })).status).toBe(400);
    expect((await put("oidc", { ...oidc, client_secret: undefined })).status).toBe(400);
    expect((await put("google", oidc)).status).toBe(400);
    const metadata = await put("oidc", { ...oidc, issuer_url: "https://169.254.169.254" });
    expect(metadata.json["code"]).toBe("target_not_allowed");
    const google = expectStatus(await put("google", { client_id: "x", client_secret: "y" }), 200).json;
    expect(google).toMatchObject({ provider: "google", issuer_url: "https://accounts.google.com" });
    expect(expectStatus(await rest.call("DELETE", fixture.path("/idp-providers/google")), 204).status).toBe(204);
    expect((await rest.call("DELETE", fixture.path("/idp-providers/google"))).json["code"]).toBe("object_not_found");
    const response = expectStatus(await put("oidc", { ...oidc, ca_certificate: provider.ca }), 200).json;
    const { json: auth } = await rest.get<AuthJson>(fixture.path());
    expect(response).toMatchObject({ scopes: ["openid", "email"], callback_url: `${auth.issuer_url}/callback/oidc` });
    expect(JSON.stringify([response, auth])).not.toContain(provider.clientSecret);
    const { client_secret: _, ...stored } = { ...oidc, ca_certificate: provider.ca };
    for (const change of [
      { issuer_url: "https://login.example.com" },
      { client_id: "another" },
      { ca_certificate: undefined },
    ]) {
      const { status, json } = await put("oidc", { ...stored, ...change });
      expect([status, json["errors"]], JSON.stringify(change)).toMatchObject([
        400,
        [{ field: "client_secret", code: "secret_required" }],
      ]);
    }
    expectStatus(await put("oidc", stored), 200);
  });

  it("signs in by another provider, and identifies a user by the subject", async () => {
    const config = await fixture.discover();
    const browser = fixture.browser(providerOptions());
    await waitUntil(
      "the issuer offers it",
      async () => linkOf((await fixture.begin(browser, config)).page.text) !== "",
    );
    provider.user = { sub: "person-1", email: "Mia@example.com", email_verified: true };
    const first = await through(browser, config);
    const tokens = await fixture.tokensOf(config, first.started, first.back);
    expect(tokens.claims()).toMatchObject({ email: "mia@example.com", email_verified: true, amr: ["fed"] });
    // A state of 4 KiB returns from there too.
    const state = "?&=%".repeat(1_024);
    const long = await through(fixture.browser(providerOptions()), config, { state });
    expect(new URL(long.back.url).searchParams.get("state")).toBe(state);
    // Another address at the provider, the same user at the app.
    provider.user = { sub: "person-1", email: "other@example.com", email_verified: true };
    const secondSignIn = await through(fixture.browser(providerOptions()), config, { prompt: "login" });
    expect((await fixture.tokensOf(config, secondSignIn.started, secondSignIn.back)).claims()).toMatchObject({
      sub: tokens.claims()?.sub,
      email: "mia@example.com",
    });
    // By mail it is the same user too: both sides have verified the address.
    expect((await fixture.signIn("mia@example.com")).claims()?.sub).toBe(tokens.claims()?.sub);
  });

  it("links by an address only when both sides verified it, and rejects the response of another sign-in", async () => {
    const config = await fixture.discover();
    provider.user = { sub: "person-2", email: "mia@example.com", email_verified: false };
    const unverified = await through(fixture.browser(providerOptions()), config);
    expect(unverified.back).toMatchObject({
      status: 403,
      text: expect.stringContaining("has not verified your address"),
    });
    expectStatus(await fixture.platform.rest.post(fixture.path("/users"), { email: "nils@example.com" }), 201);
    provider.user = { sub: "person-3", email: "nils@example.com", email_verified: true };
    const early = await through(fixture.browser(providerOptions()), config);
    expect(early.back).toMatchObject({ status: 403, text: expect.stringContaining("Sign in by mail once") });
    const byMail = await fixture.signIn("nils@example.com");
    const linked = await through(fixture.browser(providerOptions()), config);
    const tokens = await fixture.tokensOf(config, linked.started, linked.back);
    expect(tokens.claims()?.sub).toBe(byMail.claims()?.sub);
    provider.user = undefined;
    const refused = await through(fixture.browser(providerOptions()), config);
    expect(refused.back).toMatchObject({ status: 400, text: expect.stringContaining("did not sign you in") });

    provider.user = { sub: "person-4", email: "eve@example.com", email_verified: true };
    const { issuer_url: issuer } = (await fixture.platform.rest.get<AuthJson>(fixture.path())).json;
    const eves = fixture.browser(providerOptions());
    const started = await fixture.begin(eves, config);
    const link = new URL(linkOf(started.page.text), started.page.url).href;
    const code = await eves.get(link, { stopAt: `${issuer}/callback/oidc` });
    // Eve sends her own authorization response to another user: that browser never requested it.
    const victim = await fixture.browser(providerOptions()).get(code.url);
    expect(victim).toMatchObject({ status: 400, text: expect.stringContaining("expired") });
    await fixture.platform.rest.call("PATCH", fixture.path(), { body: { sign_up: "closed" } });
    // A user who signs in before issuers have the change exists: the next one is another user.
    let newUsers = 0;
    await waitUntil("sign-up is closed", async () => {
      newUsers += 1;
      provider.user = { sub: `late-${newUsers}`, email: `late-${newUsers}@example.com`, email_verified: true };
      const { back } = await through(fixture.browser(providerOptions()), config);
      return back.status === 403;
    });
    await fixture.platform.rest.call("PATCH", fixture.path(), { body: { sign_up: "open" } });
    const sql = await openPostgresql(fixture.platform, fixture.users.connection, { password: fixture.users.password });
    const { rows } = await sql.query("SELECT subject FROM _mdb_auth.identities ORDER BY subject");
    const subjects = rows.map(({ subject }) => String(subject));
    expect(subjects.filter((subject) => subject.startsWith("person-"))).toEqual(["person-1", "person-3"]);
    expect(subjects).not.toContain(`late-${newUsers}`);
    await sql.end();
  });

  it("serves the issuer under a domain once its TXT record exists", async () => {
    const { rest } = fixture.platform;
    const path = `/app-services/${fixture.appId}/domains`;
    expect((await rest.post(path, { name: "no domain" })).status).toBe(400);
    expect((await rest.post(path, { name: "x.local.holdfast.test" })).status).toBe(400);
    const created = expectStatus(await rest.post<DomainJson>(path, { name: "Login.Shop.Example." }), 201).json;
    expect(created).toMatchObject({
      name: domain,
      status: "pending",
      verification: { type: "TXT", name: `_holdfast.${domain}` },
    });
    expect((await rest.post(path, { name: domain })).json["code"]).toBe("name_taken");
    const verify = () => rest.post<DomainJson>(`${path}/${created.id}/verify`, {});
    expect((await verify()).json).toMatchObject({ code: "custom_domain_not_verified" });
    texts.set(created.verification.name, "holdfast-domain=another");
    expect((await verify()).status).toBe(422);
    const custom = { attachment_id: fixture.attachmentId, smtp: fixture.smtp, issuer_domain_choice: "custom" };
    const early = await rest.post(fixture.path("/enable"), custom);
    expect(early.json["code"]).toBe("custom_domain_not_verified");
    texts.set(created.verification.name, created.verification.value);
    expect(expectStatus(await verify(), 200).json.status).toBe("verified");
    const before = await fixture.signIn("olga@example.com");
    await rest.post(fixture.path("/disable"), {});
    const { issuer_url: issuer } = await fixture.enable({ issuer_domain_choice: "custom", custom_domain: domain });
    expect(new URL(issuer).hostname).toBe(domain);
    expect((await rest.call("DELETE", `${path}/${created.id}`)).json["code"]).toBe("wrong_state");
    const config = await fixture.discover(providerOptions());
    provider.user = { sub: "person-5", email: "olga@example.com", email_verified: true };
    const signIn = await through(fixture.browser(providerOptions()), config);
    const claims = (await fixture.tokensOf(config, signIn.started, signIn.back)).claims();
    expect(claims).toMatchObject({ iss: issuer, sub: before.claims()?.sub });
    const { json: app } = await rest.get<{ domains: DomainJson[] }>(`/app-services/${fixture.appId}`);
    expect(app.domains).toMatchObject([{ name: domain, status: "verified" }]);
  });
});
