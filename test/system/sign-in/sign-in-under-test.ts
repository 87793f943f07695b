import { createHash, randomBytes, randomInt } from "node:crypto";
import * as client from "openid-client";
import {
  type Browser,
  createBrowser,
  type BrowserOptions,
  type Page,
  fetchOver,
  platformAgent,
} from "@holdfast/testing/network/browser.ts";
import { createCommandLine, type CommandResult } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { type MailServer, startMailServer } from "@holdfast/testing/servers/mail-server.ts";
import { GiveUp, waitUntil } from "@holdfast/testing/wait-until.ts";

export interface AuthJson {
  readonly status: string;
  readonly issuer_url: string;
  readonly failure_reason?: string;
  readonly schema_version_applied: string | null;
}

/** A platform with an app whose users can sign in, and programs of its owner. */
export interface SignInUnderTest {
  readonly platform: Platform;
  readonly services: Services;
  readonly users: RunningService;
  readonly mail: MailServer;
  readonly appId: string;
  readonly attachmentId: string;
  readonly callback: string;
  readonly smtp: Readonly<Record<string, unknown>>;
  path(rest?: string): string;
  cli(...args: string[]): Promise<CommandResult>;
  browser(options?: BrowserOptions): Browser;
  /** openid-client, as the app's public client. */
  discover(options?: BrowserOptions): Promise<client.Configuration>;
  /** Begins a sign-in, in a browser; the page that prompts for the address. */
  begin(browser: Browser, config: client.Configuration, more?: Record<string, string>): Promise<StartedSignIn>;
  /** The newest mail to an address, once `count` have arrived. */
  mailTo(address: string, count?: number): Promise<{ code: string; link: string; text: string }>;
  /** A complete sign-in: the tokens of a user who signs in by the code of a mail. */
  signIn(address: string, more?: Record<string, string>, browser?: Browser): Promise<SignedIn>;
  tokensOf(config: client.Configuration, started: StartedSignIn, lastPage: Page): Promise<SignedIn>;
  start(environment?: Record<string, string>): Promise<void>;
  /** Resolves when the sign-in is Active. */
  enable(more?: object): Promise<AuthJson>;
  remove(): Promise<void>;
}

export interface StartedSignIn {
  readonly page: Page;
  readonly verifier: string;
  readonly nonce: string;
  readonly state: string;
}

export type SignedIn = Awaited<ReturnType<typeof client.authorizationCodeGrant>>;

const callback = "https://shop.example/auth/callback";

export function createSignInUnderTest(): SignInUnderTest {
  let platform: Platform;
  let services: Services;
  let users: RunningService;
  let mail: MailServer;
  let appId = "";
  let attachmentId = "";
  let smtp: Record<string, unknown> = {};
  const browsers: Browser[] = [];
  const fixture: SignInUnderTest = {
    get platform() {
      return platform;
    },
    get services() {
      return services;
    },
    get users() {
      return users;
    },
    get mail() {
      return mail;
    },
    get appId() {
      return appId;
    },
    get attachmentId() {
      return attachmentId;
    },
    get smtp() {
      return smtp;
    },
    callback,
    path: (rest = "") => `/app-services/${appId}/auth${rest}`,
    cli(...args) {
      const line = createCommandLine({ HOLDFAST_DATA: platform.directory });
      return line.runHere(args).finally(() => line.remove());
    },
    browser(elsewhere) {
      const created = createBrowser(platform, elsewhere);
      browsers.push(created);
      return created;
    },
    async discover(elsewhere) {
      const { issuer_url: issuer } = (await platform.rest.get<AuthJson>(fixture.path())).json;
      const dispatcher = platformAgent(platform, elsewhere);
      const options = {
        [client.customFetch]: fetchOver(dispatcher),
      };
      return client.discovery(new URL(issuer), appId, undefined, client.None(), options);
    },
    async begin(browser, config, more = {}) {
      const verifier = client.randomPKCECodeVerifier();
      const nonce = client.randomNonce();
      const state = client.randomState();
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: callback,
        scope: "openid email offline_access",
        code_challenge: createHash("sha256").update(verifier).digest("base64url"),
        code_challenge_method: "S256",
        nonce,
        state,
        ...more,
      });
      return { page: await browser.get(url.href, { stopAt: callback }), verifier, nonce, state };
    },
    async mailTo(address, count = 1) {
      const found = await waitUntil(`mail ${count} to ${address}`, () => {
        const all = mail.received.filter(({ to }) => to.includes(address));
        return all.length >= count ? all.at(-1) : undefined;
      });
      const text = found.email.text ?? "";
      return {
        text,
        code: /\b(\d{6})\b/.exec(text)?.[1] ?? "",
        link: /https:\S+\/link\?\S+/.exec(text)?.[0] ?? "",
      };
    },
    async tokensOf(config, { verifier, nonce, state }, { url }) {
      return client.authorizationCodeGrant(config, new URL(url), {
        pkceCodeVerifier: verifier,
        expectedNonce: nonce,
        expectedState: state,
        idTokenExpected: true,
      });
    },
    async signIn(address, more = {}, browser = fixture.browser()) {
      const config = await fixture.discover();
      const started = await fixture.begin(browser, config, more);
      const before = mail.received.filter(({ to }) => to.includes(address)).length;
      const codePage = await browser.submit(started.page, { email: address });
      const { code } = await fixture.mailTo(address, before + 1);
      return fixture.tokensOf(config, started, await browser.submit(codePage, { code }, { stopAt: callback }));
    },
    async enable(more = {}) {
      const body = { attachment_id: attachmentId, smtp, ...more };
      expectStatus(await platform.rest.post(fixture.path("/enable"), body), 201);
      const check = async () => {
        const { json } = await platform.rest.get<AuthJson>(fixture.path());
        if (json.status === "Failed") throw new GiveUp(json.failure_reason);
        return json.status === "Active" ? json : undefined;
      };
      return waitUntil("the sign-in is active", check, { withinMs: 60_000 });
    },
    async start(environment = {}) {
      const host = `127.0.${randomInt(2, 250)}.${randomInt(2, 250)}`;
      const user = { name: "shop", password: `mail-${randomBytes(9).toString("base64url")}` };
      mail = await startMailServer({ user, at: { host, port: 2_525 } });
      platform = await startPlatform({ environment: { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8", ...environment } });
      services = createServices(platform);
      users = await services.createRunning("first");
      smtp = {
        host,
        port: 2_525,
        username: user.name,
        password: user.password,
        from_address: "shop@example.com",
        from_name: "Shop",
        ca_certificate: mail.ca,
      };
      const app = { name: "shop", home_url: "https://shop.example" };
      const created = expectStatus(await platform.rest.post<{ id: string }>("/app-services", app), 201).json;
      appId = created.id;
      const attached = { service_id: users.service.id };
      const response = await platform.rest.post<{ id: string }>(`/app-services/${appId}/attachments`, attached);
      attachmentId = expectStatus(response, 201).json.id;
    },
    async remove() {
      await Promise.all(browsers.map((each) => each.close()));
      await platform?.remove();
      await mail?.close();
    },
  };
  return fixture;
}
