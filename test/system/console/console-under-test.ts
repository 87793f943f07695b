import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import { expect } from "vitest";
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

/** A platform, and a browser that opens its console. */
export interface ConsoleUnderTest {
  readonly platform: Platform;
  /** Faults of pages: errors of scripts, and violations of the policy. */
  readonly faults: readonly string[];
  /** A page that the operator of the installation is signed in to by a one-time code. */
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

export function createConsoleUnderTest(): ConsoleUnderTest {
  let platform: Platform | undefined;
  let chromium: Chromium | string | undefined;
  const contexts: BrowserContext[] = [];
  const faults: string[] = [];
  /** Pages with a request that ended because the host's addresses changed. */
  const incomplete = new Set<Page>();
  const fixture: ConsoleUnderTest = {
    faults,
    get platform() {
      if (platform === undefined) throw new Error("the platform was not started");
      return platform;
    },
    async openSignedIn(look) {
      const operator = fixture.platform.rest.as(fixture.platform.operator);
      const { json } = await operator.post<SessionCode>("/sessions/codes", {});
      return fixture.open(`#code=${json.code}`, look);
    },
    async open(path, { colorScheme = "light", width = 1_280 } = {}) {
      if (typeof chromium !== "object") throw new Error(chromium ?? "no browser was started");
      const viewport = { width, height: 900 };
      const context = await chromium.browser.newContext({ ignoreHTTPSErrors: true, viewport, colorScheme });
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
      await page.evaluate(axe);
      const found = (await page.evaluate(
        "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })",
      )) as AxeResult;
      const findings = found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
      expect(findings, name).toEqual([]);
      const overflow = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth",
      );
      expect(overflow, `${name} scrolls to the side`).toBeLessThanOrEqual(0);
      if ((page.viewportSize()?.width ?? 0) < 640)
        expect(await page.evaluate(cutParts), `${name} has parts that are cut`).toEqual([]);
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
      await expect.poll(() => page.locator("#content .bone").count()).toBe(0);
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
