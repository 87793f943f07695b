import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "@holdfast/testing/api/test-gateway.ts";
import { type Chromium, startChromium } from "@holdfast/testing/servers/chromium.ts";

// The first run builds an image, which takes minutes on a busy machine.
const longMs = 600_000;

describe("the page of the API, in Chromium", { timeout: longMs }, () => {
  let gateway: TestGateway;
  let chromium: Chromium | string;
  beforeAll(async () => {
    gateway = await startTestGateway();
    chromium = await startChromium({});
  }, longMs);
  afterAll(async () => {
    if (typeof chromium === "object") await chromium.close();
    await gateway?.close();
  });

  /** Runs the checks on a page of the width, which must not scroll sideways before or after. */
  const onPage = async (path: string, width: number, check: (page: Page) => Promise<void>): Promise<void> => {
    if (typeof chromium === "string") return;
    const context = await chromium.browser.newContext({ ignoreHTTPSErrors: true, viewport: { width, height: 844 } });
    try {
      const page = await context.newPage();
      await page.goto(`${gateway.baseUrl}${path}`);
      await check(page);
      expect(await page.evaluate("document.documentElement.scrollWidth"), path).toBeLessThanOrEqual(width);
    } finally {
      await context.close();
    }
  };

  it.each([390, 1_280])("has the tags first, and operations on demand, %i pixels wide", async (width) => {
    await onPage("/docs", width, async (page) => {
      await page.locator(".opblock-tag").first().waitFor({ timeout: longMs });
      expect(await page.locator(".opblock-tag").count()).toBeGreaterThan(3);
      expect(await page.locator(".opblock").count()).toBe(0);
      await page.locator(".opblock-tag").first().click();
      await page.locator(".opblock").first().waitFor({ timeout: longMs });
      await page.locator(".opblock-summary-control").first().click();
      await page.locator(".opblock-body").first().waitFor({ timeout: longMs });
    });
  });

  it.each(["/docs/methods", "/docs/errors"])("%s is readable on a phone", async (path) => {
    await onPage(path, 390, async (page) => {
      expect(await page.locator("table tr").count()).toBeGreaterThan(20);
    });
  });
});
