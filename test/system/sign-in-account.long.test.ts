import { Secret, TOTP } from "otpauth";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type AuthJson, createSignInUnderTest } from "./sign-in/sign-in-under-test.ts";

describe("the account of an app's user", () => {
  const fixture = createSignInUnderTest();

  beforeAll(async () => {
    await fixture.start();
    await fixture.enable();
  });
  afterAll(() => fixture.remove());

  it("requires a second factor that a user set up, each code once, and accepts a recovery code instead", async () => {
    const browser = fixture.browser();
    const { issuer_url: issuer } = (await fixture.platform.rest.get<AuthJson>(fixture.path())).json;
    // Mails of an address are limited by network, so each browser has its own.
    const before = fixture.browser({ from: "127.0.88.1" });
    await fixture.signIn("hugo@example.com", {}, before);
    await fixture.signIn("hugo@example.com", {}, browser);
    const account = await browser.get(`${issuer}/account`);
    expect(account.text).toContain("hugo@example.com");
    const setUp = await browser.post(`${issuer}/account/second-factor`);
    const secret = /<code>([A-Z2-7]+)<\/code>/.exec(setUp.text)?.[1] ?? "";
    const totp = new TOTP({ secret: Secret.fromBase32(secret) });
    const confirmed = await browser.submit(setUp, { code: totp.generate() });
    const recovery = [...confirmed.text.matchAll(/<code>([0-9a-f]{16})<\/code>/g)].map(([, code = ""]) => code);
    expect(recovery).toHaveLength(10);
    // A session from before the second factor is not valid any more, and cannot remove it.
    expect((await before.post(`${issuer}/account/second-factor/remove`)).url).toMatch(/\/sign-in\/[\w-]+$/);
    expect((await before.get(`${issuer}/account`)).text).not.toContain("hugo@example.com");
    const config = await fixture.discover();
    const silent = await fixture.begin(before, config, { prompt: "none" });
    expect(silent.page.url).toContain("error=login_required");
    // The session that confirmed the second factor continues, and needs a code to remove it.
    expect((await browser.get(`${issuer}/account`)).text).toContain("hugo@example.com");
    const removal = await browser.post(`${issuer}/account/second-factor/remove`);
    expect(removal.status).toBe(400);
    // The code that confirmed it is used up.
    expect(await browser.submit(removal, { code: totp.generate() })).toMatchObject({ status: 400 });
    const started = await fixture.begin(browser, config, { prompt: "login" });
    await waitUntil(
      "another mail may be requested",
      async () => (await browser.submit(started.page, { email: "hugo@example.com" })).status === 200,
      { everyMs: 3_000 },
    );
    const { code } = await fixture.mailTo("hugo@example.com", 3);
    const second = await browser.submit(await browser.get(`${started.page.url}/code`), { code });
    expect(second.text).toContain("Second factor");
    const used = await browser.submit(second, { code: recovery[0] ?? "" }, { stopAt: fixture.callback });
    const signedIn = await fixture.tokensOf(config, started, used);
    expect(signedIn.claims()).toMatchObject({ amr: ["otp", "mfa"] });
    const removed = await browser.submit(removal, { code: recovery[1] ?? "" });
    expect(removed.text).toContain("Set it up");
  });
});
