import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser, Page } from "@holdfast/testing/network/browser.ts";
import { type IssuerProcess, startIssuerProcess } from "@holdfast/testing/servers/issuer-process.ts";

const nativeUri = "com.example.shop:/oauth2redirect";
const loopbackUri = "http://[::1]/callback";

describe("the return from an issuer to the app", () => {
  let fixture: IssuerProcess;
  beforeAll(async () => {
    fixture = await startIssuerProcess({
      moreClients: [
        { clientId: "native", name: "native", redirectUris: [nativeUri, loopbackUri], requirePkce: true },
        {
          clientId: "out",
          name: "out",
          redirectUris: ["https://out.example/cb"],
          postLogoutRedirectUris: ["https://out.example/bye"],
          requirePkce: true,
        },
      ],
    });
  });
  afterAll(() => fixture?.remove());

  let users = 0;
  const newAddress = () => `user-${(users += 1)}@example.com`;

  /** Signs in on the page that `begin` returned; the last page. */
  async function signIn(browser: Browser, page: Page, stopAt = fixture.callback): Promise<Page> {
    const address = newAddress();
    const codePage = await browser.submit(page, { email: address });
    const { code } = await fixture.mailTo(address);
    return browser.submit(codePage, { code }, { stopAt });
  }

  const parametersOf = ({ url }: Page) => Object.fromEntries(new URL(url).searchParams);
  const cookieBytes = ({ cookies }: Browser) =>
    [...cookies].reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  /** 4,096 bytes, of characters that JSON and URLs escape. */
  const longState = `${'{"target":"/a?b=c&d"}'.repeat(194)}${"ü".repeat(11)}`;

  it("has a state of 4 KiB, which is in no cookie and in no row", async () => {
    expect(Buffer.byteLength(longState)).toBe(4_096);
    const browser = fixture.browser();
    const page = await fixture.begin(browser, { state: longState });
    expect(page.status).toBe(200);
    expect(cookieBytes(browser)).toBeLessThan(1_500);
    const lastPage = await signIn(browser, page);
    expect(parametersOf(lastPage)).toMatchObject({ state: longState, code: expect.any(String), iss: fixture.url });
    const tables = await fixture.rows<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = '_mdb_auth'",
    );
    expect(tables).toHaveLength(9);
    for (const { name } of tables) {
      const [found] = await fixture.rows<{ count: string }>(
        `SELECT count(*) FROM _mdb_auth.${name} AS r WHERE r::text LIKE '%/a?b=c%'`,
      );
      expect(found?.count, name).toBe("0");
    }
  });

  it("has a long state in the tab where the sign-in began, though the mail's link was opened elsewhere", async () => {
    const browser = fixture.browser();
    const first = await fixture.begin(browser, { state: longState, prompt: "login" });
    const address = newAddress();
    const codePage = await browser.submit(first, { email: address });
    const { link } = await fixture.mailTo(address);
    const other = await browser.submit(await browser.get(link), {}, { stopAt: fixture.callback });
    expect(other).toMatchObject({ status: 200, text: expect.stringContaining("Go back to the tab where you started") });
    const reloaded = await browser.get(codePage.url, { stopAt: fixture.callback });
    expect(parametersOf(reloaded)).toMatchObject({ state: longState, code: expect.any(String) });
  });

  it("takes no state that was sealed for another sign-in", async () => {
    const browser = fixture.browser();
    const first = await fixture.begin(browser, { state: longState });
    const second = await fixture.begin(browser, { state: longState.replace("/a", "/x") });
    const mixed = await browser.get(
      `${new URL(first.url).origin}${new URL(first.url).pathname}${new URL(second.url).search}`,
    );
    const after = await signIn(browser, mixed);
    expect(after).toMatchObject({ status: 200, text: expect.stringContaining("Go back to the tab") });
    const lastPage = await browser.get(first.url, { stopAt: fixture.callback });
    expect(parametersOf(lastPage)["state"]).toBe(longState);
  });

  it("continues a second tab of a user who has signed in by now, unless its request excludes that user", async () => {
    const browser = fixture.browser();
    const [first, reloaded, typed, forced] = [
      await fixture.begin(browser, { state: "first" }),
      await fixture.begin(browser, { state: "reloaded" }),
      await fixture.begin(browser, { state: "typed" }),
      await fixture.begin(browser, { state: "forced", max_age: "0" }),
    ];
    const lastPage = await signIn(browser, first);
    expect(parametersOf(lastPage)).toMatchObject({ state: "first", code: expect.any(String) });
    const stopAt = fixture.callback;
    expect(parametersOf(await browser.get(reloaded.url, { stopAt }))).toMatchObject({ state: "reloaded" });
    expect(parametersOf(await browser.submit(typed, { email: newAddress() }, { stopAt }))).toMatchObject({
      state: "typed",
    });
    expect(parametersOf(await browser.get(forced.url, { stopAt }))).toMatchObject({ state: "forced" });
    // A request that is newer than the session, and forces a sign-in, still does.
    const anew = await fixture.begin(browser, { state: "anew", prompt: "login" });
    expect((await browser.get(anew.url, { stopAt })).text).toContain("Send me a code");
  });

  it("redirects to the private-use scheme of a native app, and to loopback by IPv6", async () => {
    const browser = fixture.browser();
    for (const uri of [nativeUri, "http://[::1]:49152/callback"]) {
      const page = await fixture.begin(browser, { client_id: "native", redirect_uri: uri, prompt: "login" });
      // A browser sends no form whose redirect this policy excludes.
      const policy = String(page.headers["content-security-policy"]);
      expect(policy).toContain(`form-action 'self' ${new URL(uri).protocol};`);
      const lastPage = await signIn(browser, page, uri);
      expect(lastPage.url.startsWith(`${uri}?code=`), lastPage.url).toBe(true);
      expect(parametersOf(lastPage)).toMatchObject({ state: "s", iss: fixture.url });
    }
  });

  it("returns each refusal with its state", async () => {
    const browser = fixture.browser();
    for (const more of [
      { state: "s".repeat(4_097) },
      { prompt: "none" },
      { nonce: "n".repeat(513) },
      { response_type: "token" },
      { id_token_hint: "x" },
    ]) {
      const response = parametersOf(await fixture.begin(browser, more));
      expect(response, JSON.stringify(Object.keys(more))).toMatchObject({
        error: expect.any(String),
        state: more.state ?? "s",
      });
    }
  });

  it.each([
    [
      "an unregistered return address",
      { client_id: "out", post_logout_redirect_uri: "https://evil.example/" },
      "did not register",
    ],
    ["a return address without a client", { post_logout_redirect_uri: "https://out.example/bye" }, "did not register"],
    ["a token that is not valid", { client_id: "out", id_token_hint: "x" }, "You can close this page"],
  ])("signs out with %s, and ends on a page of the issuer", async (_, parameters, text) => {
    const browser = fixture.browser();
    await signIn(browser, await fixture.begin(browser));
    const prompt = await browser.get(`${fixture.url}/logout?${new URLSearchParams(parameters).toString()}`);
    expect(prompt).toMatchObject({ status: 200, text: expect.stringContaining("Sign out?") });
    const out = await browser.submit(prompt);
    expect(out).toMatchObject({ status: 200, text: expect.stringContaining(text) });
    expect(out.text).toContain("You are signed out");
    expect(out.text).not.toContain("evil.example");
    expect(parametersOf(await fixture.begin(browser, { prompt: "none" }))).toMatchObject({ error: "login_required" });
  });

  it("signs out and returns to a registered address", async () => {
    const browser = fixture.browser();
    await signIn(browser, await fixture.begin(browser));
    const target = "https://out.example/bye";
    const parameters = { client_id: "out", post_logout_redirect_uri: target, state: "s" };
    const prompt = await browser.get(`${fixture.url}/logout?${new URLSearchParams(parameters).toString()}`);
    expect((await browser.submit(prompt, {}, { stopAt: target })).url).toBe(`${target}?state=s`);
  });
});
