import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { Secret, TOTP } from "otpauth";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestCertificate } from "@holdfast/testing/controller/test-certificate.ts";
import { type Chromium, startChromium } from "@holdfast/testing/servers/chromium.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createSignInUnderTest } from "./sign-in/sign-in-under-test.ts";

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
// The bundle for pages is not an export of the package.
const oidcClient = readFileSync(
  join(dirname(require.resolve("oidc-client-ts")), "../browser/oidc-client-ts.min.js"),
  "utf8",
);
const longMs = 300_000;
const shop = "https://shop.example";

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

/** Appearances of a page. */
// biome-ignore format: a table, aligned so that it reads as one
const looks = [
  { name: "light",           colorScheme: "light", width: 1_280 },
  { name: "dark and narrow", colorScheme: "dark",  width: 320 },
] as const;

describe("the pages of an app's issuer, in Chromium", { timeout: longMs }, () => {
  const fixture = createSignInUnderTest();
  let chromium: Chromium | string;
  let issuer = "";
  let app: Server;
  const contexts: BrowserContext[] = [];
  /** Violations of a page's own content security policy. */
  const forbidden: string[] = [];

  beforeAll(async () => {
    await fixture.start();
    ({ issuer_url: issuer } = await fixture.enable({ theme: { display_name: "The Shop", brand_color: "#f5d90a" } }));
    await fixture.platform.rest.call("PUT", fixture.path("/idp-providers/google"), {
      body: { client_id: "x", client_secret: "y" },
    });
    app = await startApp();
    const { port } = app.address() as AddressInfo;
    chromium = await startChromium({ [new URL(issuer).hostname]: undefined, [new URL(shop).hostname]: port });
    if (typeof chromium === "string") console.warn(`no Chromium here: ${chromium}`);
  }, longMs);
  afterAll(async () => {
    for (const context of contexts) await context.close();
    if (typeof chromium === "object") await chromium.close();
    app?.close();
    await fixture.remove();
  }, longMs);

  async function open(
    options: { colorScheme?: "light" | "dark"; width?: number; javaScriptEnabled?: boolean } = {},
  ): Promise<Page> {
    if (typeof chromium === "string") throw new Error(chromium);
    const { width = 1_280, ...others } = options;
    const viewport = { width, height: 800 };
    const context = await chromium.browser.newContext({ ignoreHTTPSErrors: true, viewport, ...others });
    contexts.push(context);
    const page = await context.newPage();
    page.on("console", (message) => {
      if (/Content Security Policy/i.test(message.text())) forbidden.push(message.text());
    });
    return page;
  }

  /** Expects no finding of axe, no horizontal scrolling, and no style or script that the policy forbids. */
  async function expectAccessible(page: Page, name: string): Promise<void> {
    await page.evaluate(axe);
    const found = (await page.evaluate(
      "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })",
    )) as AxeResult;
    const faults = found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
    expect(faults, name).toEqual([]);
    const overflow = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
    expect(overflow, `${name} scrolls to the side`).toBeLessThanOrEqual(0);
    expect(forbidden, name).toEqual([]);
  }

  const authorizeUrl = async (more: Record<string, string> = {}) => {
    const config = await fixture.discover();
    return `${config.serverMetadata().authorization_endpoint}?${new URLSearchParams({
      client_id: fixture.appId,
      redirect_uri: fixture.callback,
      response_type: "code",
      scope: "openid email",
      code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbvaTyXoqqqU",
      code_challenge_method: "S256",
      state: "state",
      ...more,
    }).toString()}`;
  };

  it.each(looks)("have no finding of axe, $name", async ({ name, colorScheme, width }) => {
    const page = await open({ colorScheme, width });
    const email = `${colorScheme}@example.com`;
    await page.goto(await authorizeUrl());
    await expectAccessible(page, `${name}: address`);
    await page.fill("#email", "not an address@x");
    await page.evaluate("document.querySelector('form').noValidate = true");
    await page.click("button");
    await expectAccessible(page, `${name}: a wrong address`);
    await page.fill("#email", email);
    // With only the keyboard.
    await page.keyboard.press("Enter");
    await page.waitForSelector("#code");
    await expectAccessible(page, `${name}: code`);
    const { code, link } = await fixture.mailTo(email);
    await page.fill("#code", code === "000000" ? "000001" : "000000");
    await page.keyboard.press("Enter");
    await page.waitForSelector("[role=alert]");
    await expectAccessible(page, `${name}: a wrong code`);
    const otherPage = await open({ colorScheme, width });
    await otherPage.goto(link);
    await expectAccessible(otherPage, `${name}: a link in another browser`);
    await page.goto(link);
    await expectAccessible(page, `${name}: the link`);
    await page.click("button");
    await page.waitForURL(`${shop}/**`);

    await page.goto(`${issuer}/account`);
    await expectAccessible(page, `${name}: account`);
    await page.click("text=Set it up");
    await page.waitForSelector(".picture");
    await expectAccessible(page, `${name}: a second factor`);
    const secret = await page.textContent("p code");
    const totp = new TOTP({ secret: Secret.fromBase32(secret ?? "") });
    await page.fill("#code", totp.generate());
    await page.keyboard.press("Enter");
    await page.waitForSelector("text=I have saved them");
    await expectAccessible(page, `${name}: recovery codes`);
    await page.goto(`${issuer}/logout`);
    await expectAccessible(page, `${name}: logout`);
    await page.click("button");
    await expectAccessible(page, `${name}: signed out`);
    await page.goto(`${issuer}/authorize?client_id=nobody`);
    await expectAccessible(page, `${name}: a problem`);
  });

  it("sign in without JavaScript", async () => {
    const page = await open({ javaScriptEnabled: false });
    await page.goto(await authorizeUrl());
    await page.fill("#email", "plain@example.com");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#code");
    await page.fill("#code", (await fixture.mailTo("plain@example.com")).code);
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/auth\/callback\?code=/);
  });

  it("cannot be framed", async () => {
    const page = await open();
    await page.goto(`${shop}/`);
    await page.evaluate(
      `document.body.innerHTML = '<iframe src="${issuer}/account"></iframe><iframe src="/framed"></iframe>'`,
    );
    const texts = () => Promise.all(page.frames().map((frame) => frame.title().catch(() => "")));
    await waitUntil(
      "the app's own frame is rendered",
      async () => (await texts()).filter((title) => title === "Shop").length === 2,
    );
    await waitUntil("the issuer's was refused", () => forbidden.some((text) => text.includes("frame-ancestors")));
    expect(await texts()).not.toContainEqual(expect.stringContaining("The Shop"));
    forbidden.length = 0;
  });

  it("are readable with any brand color", async () => {
    const page = await open();
    for (const color of ["#000000", "#ffffff", "#808080", "#ff0000", "#0000ff", "#767676"]) {
      await fixture.platform.rest.patch(fixture.path(), { theme: { brand_color: color } });
      await waitUntil(`the pages are ${color}`, async () => {
        const { text } = await fixture.browser().get(`${issuer}/style.css`);
        return text.includes(`--brand: ${color}`);
      });
      await page.goto(await authorizeUrl());
      await page.reload();
      await expectAccessible(page, color);
    }
  });

  it("serve oidc-client-ts in a page of the app, which refreshes and signs out by itself", async () => {
    const page = await open();
    const settings = JSON.stringify({
      authority: issuer,
      client_id: fixture.appId,
      redirect_uri: fixture.callback,
      post_logout_redirect_uri: shop,
      scope: "openid email offline_access",
    });
    const manager = `const manager = new oidc.UserManager({ ...${settings}, userStore: new oidc.WebStorageStateStore({ store: localStorage }) });`;
    await page.goto(`${shop}/`);
    await leave(page, `${manager} await manager.signinRedirect();`);
    await page.waitForSelector("#email");
    await page.fill("#email", "script@example.com");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#code");
    await page.fill("#code", (await fixture.mailTo("script@example.com")).code);
    await page.keyboard.press("Enter");
    await page.waitForURL(`${shop}/**`);
    const user = await page.evaluate(
      `(async () => { ${manager} const user = await manager.signinCallback(); return user.profile.email; })()`,
    );
    expect(user).toBe("script@example.com");
    const refreshed = await page.evaluate(
      `(async () => { ${manager} const before = (await manager.getUser()).access_token;
        return (await manager.signinSilent()).access_token !== before; })()`,
    );
    expect(refreshed).toBe(true);
    await leave(page, `${manager} await manager.signoutRedirect();`);
    await page.waitForURL((url) => url.origin === shop && url.pathname === "/");
    await page.goto(await authorizeUrl({ prompt: "none" }));
    await page.waitForURL(/error=login_required/);
  });
});

/** Runs a script that navigates to another page, which may end the script before it returns. */
async function leave(page: Page, script: string): Promise<void> {
  await page.evaluate(`(async () => { ${script} })()`).catch((error: unknown) => {
    if (!String(error).includes("context was destroyed")) throw error;
  });
}

/** The app: a page at every path, with a client library in it. */
async function startApp(): Promise<Server> {
  const { key, cert } = await createTestCertificate(undefined, "127.0.0.1");
  const server = createServer({ key, cert }, (request, response) => {
    const isScript = request.url === "/client.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? oidcClient : "<!doctype html><title>Shop</title><script src='/client.js'></script>");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
