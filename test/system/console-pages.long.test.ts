import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { createConsoleUnderTest } from "./console/console-under-test.ts";

const longMs = 300_000;

/** Appearances of a page. */
// biome-ignore format: a table, aligned so that it reads as one
const looks = [
  { name: "light, wide",   colorScheme: "light", width: 1_280 },
  { name: "light, narrow", colorScheme: "light", width: 320 },
  { name: "dark, wide",    colorScheme: "dark",  width: 1_280 },
  { name: "dark, narrow",  colorScheme: "dark",  width: 320 },
] as const;

const tabs = ["", "connection", "metrics", "users", "backups", "logs", "events", "query", "scaling", "settings"];
const paths = [
  "services",
  "services?name=nothing",
  "services/new",
  "services/019a2f5e-1a00-7b11-9c22-3d44e55f6677",
  "events",
  "members",
  "keys",
  "audit",
  "sessions",
  "resources",
  "resources/listWebhooks",
  "resources/createWebhook",
  "resources/getQuota",
  "design",
  "nothing",
];

describe("each page of the console", { timeout: longMs }, () => {
  const fixture = createConsoleUnderTest();
  let service: ServiceJson;
  beforeAll(async () => {
    await fixture.start();
    ({ service } = await createServices(fixture.platform).createRunning("orders", { database_type: "postgresql" }));
  }, longMs);
  afterAll(fixture.remove, longMs);

  async function screenshot(page: Page, name: string): Promise<void> {
    const directory = process.env["HOLDFAST_SCREENSHOTS"];
    if (directory === undefined) return;
    mkdirSync(directory, { recursive: true });
    await page.screenshot({ path: join(directory, `${name.replaceAll(/\W+/g, "-")}.png`), fullPage: true });
  }

  /** Loading ends before the page is judged. */
  async function settled(page: Page): Promise<void> {
    await page.locator("h1").first().waitFor();
    // The page of parts has one that is always loading.
    if (page.url().endsWith("/design")) return;
    await expect.poll(() => page.locator("#content .bone").count()).toBe(0);
  }

  it.each(looks)("has no finding of axe, $name", async ({ name, ...look }) => {
    const page = await fixture.openSignedIn(look);
    await settled(page);
    const base = `${fixture.platform.admin.base_url}/console`;
    for (const path of [...paths, ...tabs.map((tab) => `services/${service.id}/${tab}`)]) {
      await page.goto(`${base}/${path}`);
      await settled(page);
      await fixture.expectAccessible(page, `${path}, ${name}`);
      await screenshot(page, `${path.replace(service.id, "orders")} ${name}`);
    }
    await page.goto(`${base}/services/${service.id}/settings`);
    await page.getByRole("button", { name: "Delete service" }).click();
    await page.getByRole("dialog").waitFor();
    await fixture.expectAccessible(page, `a dialog, ${name}`);
    await screenshot(page, `dialog ${name}`);
  });

  it.each(looks)("the page to sign in has no finding of axe, $name", async ({ name, ...look }) => {
    const page = await fixture.open("services", look);
    await page.getByLabel("User name").waitFor();
    await fixture.expectAccessible(page, `sign in, ${name}`);
    await screenshot(page, `sign in ${name}`);
  });
});
