import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import { afterEach, beforeEach, expect } from "vitest";
import type { SessionCode } from "@holdfast/sdk/responses.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { type Chromium, startChromium } from "@holdfast/testing/servers/chromium.ts";

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
}

/** Elements of the content that are wider than they can show, as text. */
const cutParts = `[...document.querySelectorAll("#content *")]
  .filter((element) => {
    if (element.closest(".result, .visually-hidden, .uplot, caption, thead, select, input, textarea") !== null) return false;
    const { overflowX } = getComputedStyle(element);
    return overflowX !== "visible" && element.scrollWidth > element.clientWidth + 1;
  })
  .map((element) => element.cloneNode().outerHTML + " " + element.textContent.slice(0, 80))`;

/** Appearances of a page. */
// biome-ignore format: a table, aligned so that it reads as one
export const looks = [
  { name: "light, wide",   colorScheme: "light", width: 1_280 },
  { name: "light, narrow", colorScheme: "light", width: 320 },
  { name: "dark, wide",    colorScheme: "dark",  width: 1_280 },
  { name: "dark, narrow",  colorScheme: "dark",  width: 320 },
] as const;

interface Look {
  readonly colorScheme?: "light" | "dark";
  readonly width?: number;
}

/** Time limit of a wait for a page. It is shorter than a test's, so that an error names what did not appear. */
const pageWaitMs = 60_000;
/** Time limit of a wait for the platform's work, such as a start; also shorter than a test's. */
export const workWaitMs = 240_000;

/** A platform, and a browser that opens its console. */
export interface ConsoleUnderTest {
  readonly platform: Platform;
  /** Faults of pages: errors of scripts, and violations of the policy. */
  readonly faults: readonly string[];
  /** A page that the operator of the installation is signed in to by a one-time code, so that it has a session. */
  openSignedIn(look?: Look): Promise<Page>;
  /**
   * A page of the console. Chromium ends a navigation when the host's addresses change, which other tests do, so such a
   * navigation is repeated.
   */
  open(path: string, look?: Look): Promise<Page>;
  /**
   * Expects no finding of axe, no horizontal scrolling of the page, and no fault so far. On a narrow page no part of
   * the content scrolls to the side or is cut either, except for results of statements.
   */
  expectAccessible(page: Page, name: string): Promise<void>;
  /**
   * Resolves when the page has loaded its content. A page whose code was not loaded because the host's addresses
   * changed is loaded again.
   */
  settled(page: Page): Promise<void>;
  /** Writes a picture of the page to the directory of HOLDFAST_SCREENSHOTS, if that is set. */
  screenshot(page: Page, name: string): Promise<void>;
  /** Starts the platform with these additional settings, and the browser. */
  start(environment?: Readonly<Record<string, string>>): Promise<void>;
  remove(): Promise<void>;
}

interface UnderTestOptions {
  /** True for tests that are steps of one walk: after a failed one, the others are skipped. */
  readonly isWalk?: boolean;
}

/** Registers hooks of the suite that calls it: a failed test prints its pages. */
export function createConsoleUnderTest({ isWalk = false }: UnderTestOptions = {}): ConsoleUnderTest {
  let platform: Platform | undefined;
  let chromium: Chromium | string | undefined;
  const contexts: BrowserContext[] = [];
  const faults: string[] = [];
  /** Pages with a request that ended because the host's addresses changed. */
  const incomplete = new Set<Page>();
  let failed: string | undefined;
  beforeEach((context) => {
    if (isWalk && failed !== undefined) context.skip(`a step of its walk failed: ${failed}`);
  });
  afterEach(async ({ task }) => {
    if (task.result?.state !== "fail") return;
    failed ??= task.name;
    for (const context of contexts)
      for (const page of context.pages()) console.error(await withinLimit("the text of a page", textOf(page)));
  });
  const fixture: ConsoleUnderTest = {
    faults,
    get platform() {
      if (platform === undefined) throw new Error("the platform was not started");
      return platform;
    },
    async openSignedIn(look) {
      const operator = fixture.platform.rest.as(fixture.platform.operator);
      const { json } = await operator.post<SessionCode>("/sessions/codes", {});
      const page = await fixture.open(`#code=${json.code}`, look);
      const shell = page.locator("nav[aria-label=Pages]");
      return shell.waitFor({ state: "attached" }).then(
        () => page,
        // A code is used once, so that it cannot be sent again.
        (error: unknown) => {
          if (!incomplete.delete(page)) throw error;
          return fixture.openSignedIn(look);
        },
      );
    },
    async open(path, { colorScheme = "light", width = 1_280 } = {}) {
      if (typeof chromium !== "object") throw new Error(chromium ?? "no browser was started");
      const viewport = { width, height: 900 };
      const context = await chromium.browser.newContext({ ignoreHTTPSErrors: true, viewport, colorScheme });
      context.setDefaultTimeout(pageWaitMs);
      contexts.push(context);
      const page = await context.newPage();
      page.on("requestfailed", (request) => {
        if (request.failure()?.errorText.includes("ERR_NETWORK_CHANGED") === true) incomplete.add(page);
      });
      page.on("pageerror", (error) => faults.push(error.message));
      page.on("console", (message) => {
        if (/Content Security Policy|Trusted/i.test(message.text())) faults.push(message.text());
      });
      const url = `${fixture.platform.admin.base_url}/console/${path}`;
      await page.goto(url).catch((error: unknown) => {
        if (!String(error).includes("ERR_NETWORK_CHANGED")) throw error;
        return page.goto(url);
      });
      return page;
    },
    async expectAccessible(page, name) {
      const evaluate = (script: string) => withinLimit(`a script on ${name}`, page.evaluate(script));
      await evaluate(axe);
      const found = (await evaluate(
        "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })",
      )) as AxeResult;
      const findings = found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
      expect(findings, name).toEqual([]);
      const overflow = await evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
      expect(overflow, `${name} scrolls to the side`).toBeLessThanOrEqual(0);
      if ((page.viewportSize()?.width ?? 0) < 640)
        expect(await evaluate(cutParts), `${name} has parts that are cut`).toEqual([]);
      expect(faults, name).toEqual([]);
    },
    async settled(page) {
      const heading = page.locator("h1").first();
      await heading.waitFor().catch(async (error: unknown) => {
        if (!incomplete.delete(page)) throw error;
        await page.reload();
        await heading.waitFor();
      });
      // The page of parts has one that is always loading.
      if (page.url().endsWith("/design")) return;
      await page.locator("#content .bone").first().waitFor({ state: "detached" });
    },
    async screenshot(page, name) {
      const directory = process.env["HOLDFAST_SCREENSHOTS"];
      if (directory === undefined) return;
      mkdirSync(directory, { recursive: true });
      const path = join(directory, `${name.replaceAll(/\W+/g, "-")}.png`);
      const viewport = page.viewportSize();
      if (viewport === null) throw new Error("the page has no size");
      // A full page in a smaller viewport has its scroll bar cut off with the right edge of the content.
      const height = await page.evaluate<number>("document.documentElement.scrollHeight");
      await page.setViewportSize({ ...viewport, height: Math.max(height, viewport.height) });
      await page.screenshot({ path, fullPage: true });
      await page.setViewportSize(viewport);
    },
    async start(environment = {}) {
      [platform, chromium] = await Promise.all([startPlatform({ environment }), startChromium({})]);
    },
    async remove() {
      for (const context of contexts) await context.close();
      if (typeof chromium === "object") await chromium.close();
      await platform?.remove();
    },
  };
  return fixture;
}

/** Rejects with the name of a script without a result: Playwright has no time limit for one. */
async function withinLimit<T>(what: string, result: Promise<T>): Promise<T> {
  const limit = Promise.withResolvers<never>();
  const timer = setTimeout(() => limit.reject(new Error(`${what}: not within ${pageWaitMs} ms`)), pageWaitMs);
  try {
    return await Promise.race([result, limit.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Address and visible text of a page, for the output of a failed test. */
async function textOf(page: Page): Promise<string> {
  const text = await page.evaluate<string>("document.querySelector('#content')?.innerText ?? ''").catch(String);
  return `${page.url()}\n${text}`;
}
