import { rm } from "node:fs/promises";
import type { Page } from "playwright-core";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { asRoot, programDirectory } from "@holdfast/testing/platform/platform-software.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { createAppImages } from "@holdfast/testing/servers/app-images.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createConsoleUnderTest, looks, workWaitMs } from "./console/console-under-test.ts";

// A hosted app and a files service by the console alone, with a real registry, machines and ingress.

const skipped = asRoot
  ? await requireRecipes(import.meta.filename, "apps", "files")
  : "needs root: containers of a machine";
/** The limit of a test: more than its waits together, each of which fails with what it waited for. */
const longMs = 900_000;

describe.skipIf(skipped !== undefined)("hosted apps and files in the console", { timeout: longMs }, () => {
  const fixture = createConsoleUnderTest({ isWalk: true });
  let directory = "";
  let page: Page;
  let appId = "";
  let filesId = "";
  let rulePath = "";

  beforeAll(async () => {
    directory = programDirectory("holdfast-push");
    const [images] = await Promise.all([
      createAppImages(directory),
      fixture.start({ HOLDFAST_FLOATING_IPS: "127.92.8.2" }),
    ]);
    const { admin, rest, ca } = fixture.platform;
    const { organization_id: organization } = expectStatus(
      await rest.get<{ organization_id: string }>("/me"),
      200,
    ).json;
    const target = {
      host: new URL(admin.registry_url).host,
      username: admin.api_key_id,
      password: admin.api_key_secret,
      authorities: ca,
    };
    for (const tag of ["1", "2"])
      await images.push(target, { repository: `${organization}/shop`, tag }, { NOTE: `image ${tag}` });
    page = await fixture.openSignedIn();
  }, longMs);
  afterAll(async () => {
    await fixture.remove();
    await rm(directory, { recursive: true, force: true });
  }, longMs);

  const open = async (name: string) => page.getByRole("link", { name, exact: true }).first().click();
  const press = async (name: string) => page.getByRole("button", { name, exact: true }).click();
  const state = async (text: string) =>
    page.locator(".page-head .badge", { hasText: text }).waitFor({ timeout: workWaitMs });
  const titleOf = (path: string) =>
    path === rulePath ? "alert rule" : path.replace(appId, "shop").replace(filesId, "media");
  const lastPart = () => page.url().split("/").at(-1) ?? "";

  it("creates a files service, and a key whose secret is on the page once", async () => {
    await open("Files");
    await page.getByLabel("Name", { exact: true }).fill("media");
    await page.getByLabel("Storage in GB").fill("1");
    await press("Create files service");
    await page.getByRole("heading", { name: "media", level: 1 }).waitFor();
    filesId = lastPart();
    await state("Running");
    await open("Keys");
    await page.getByLabel("Name", { exact: true }).fill("shop");
    await page.getByLabel("Access", { exact: true }).selectOption("readonly");
    await press("Create key");
    const key = page.getByRole("group", { name: "the key and its secret" });
    await key.waitFor();
    const [, secret = ""] = /AWS_SECRET_ACCESS_KEY=(\S+)/.exec(await key.innerText()) ?? [];
    expect(secret.length).toBeGreaterThan(20);
    await page.getByRole("cell", { name: "only reads" }).waitFor();
    await page.reload();
    await page.getByRole("cell", { name: "only reads" }).waitFor();
    expect(await page.content()).not.toContain(secret);
  });

  it("runs an image, deploys another one with a secret, and rolls back", async () => {
    await open("Apps and sign-in");
    await page.getByLabel("Image", { exact: true }).waitFor();
    await page.getByLabel("Name", { exact: true }).fill("shop");
    await page.getByLabel("Image", { exact: true }).fill("shop:1");
    await press("Run the image");
    await page.getByRole("heading", { name: "shop", level: 1 }).waitFor();
    appId = lastPart();
    await state("Running");
    await open("Deployments");
    const row = (number: string) =>
      page
        .getByRole("table", { name: "Deployments" })
        .getByRole("row")
        .filter({ has: page.locator("b", { hasText: new RegExp(`^${number}$`) }) });
    await row("1").getByText("serves", { exact: true }).waitFor();
    await page.getByLabel("Image", { exact: true }).fill("shop:2");
    await press("Add a secret variable");
    await page.getByLabel("Name of secret 1").fill("KEY");
    await page.getByLabel("Value of secret 1").fill("a secret of the test");
    await press("Deploy");
    await row("2").getByText("serves", { exact: true }).waitFor({ timeout: workWaitMs });
    expect(await page.content()).not.toContain("a secret of the test");
    expect(await page.getByLabel("Name of secret 1").inputValue()).toBe("KEY");
    await expect.poll(() => page.getByLabel("Value of secret 1").inputValue()).toBe("");
    await press("Roll back to deployment 1");
    await row("3").getByText("serves", { exact: true }).waitFor({ timeout: workWaitMs });
    expect(await row("3").innerText()).toContain("shop:1");
    await expect.poll(() => page.getByLabel("Image", { exact: true }).inputValue()).toBe("shop:1");
  });

  it("says why a deployment failed, what it printed and what clients get, and keeps the input of the form", async () => {
    await page.getByLabel("Image", { exact: true }).fill("shop:2");
    await page.getByLabel("Variables", { exact: true }).fill("ENDS=3");
    await press("Deploy");
    const problem = page.getByRole("alert");
    await problem.getByText("Deployment 4 (shop:2) failed").waitFor({ timeout: workWaitMs });
    await problem.getByText("with the exit code 3").waitFor();
    await problem.getByText(/^Deployment 3 \(shop:1\) serves on/).waitFor();
    expect(await page.getByRole("group", { name: "Last 20 lines of deployment 4" }).innerText()).toContain("line 30");
    expect(await page.getByLabel("Image", { exact: true }).inputValue()).toBe("shop:2");
    expect(await page.getByLabel("Variables", { exact: true }).inputValue()).toBe("ENDS=3");
    await press("Deploy it again unchanged");
    await problem.getByText("Deployment 5 (shop:2) failed").waitFor({ timeout: workWaitMs });
    await page.getByRole("navigation", { name: "Parts of the app" }).getByRole("link", { name: "Overview" }).click();
    await problem.getByRole("link", { name: "Change and deploy" }).click();
    await page.getByRole("table", { name: "Deployments" }).waitFor();
  });

  it("fires an alert, which the page of alerts links to its app", async () => {
    await open("Alerts");
    await page.getByText("Nothing is firing").waitFor();
    await page.goto(`${fixture.platform.admin.base_url}/console/apps/${appId}/alerts`);
    await page.getByLabel("Metric", { exact: true }).selectOption("cpu");
    await page.getByLabel("Fires when CPU").selectOption("lt");
    await page.getByLabel("For minutes").fill("0");
    await press("Add rule");
    // An empty threshold is refused at its field.
    await page.locator("#content .fault:visible").waitFor();
    await page.getByLabel("Name", { exact: true }).fill("idle");
    await page.getByLabel("Threshold (percent)").fill("1000");
    await press("Add rule");
    const rule = page.getByRole("table", { name: "Alert rules" }).getByRole("row").filter({ hasText: "idle" });
    await rule.getByText("firing", { exact: true }).waitFor({ timeout: workWaitMs });
    await page.getByRole("table", { name: "Past alerts" }).getByText("still firing").waitFor();
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Alerts" }).click();
    await page.getByRole("table", { name: "Firing now" }).getByRole("link", { name: "shop" }).click();
    await page.getByRole("heading", { name: "shop", level: 1 }).waitFor();
    await rule.getByRole("button", { name: "Mute idle" }).click();
    await page.getByRole("table", { name: "Past alerts" }).getByText("the rule was paused").waitFor();
    await rule.getByRole("link", { name: "idle" }).click();
    await page.getByRole("heading", { name: "idle", level: 1 }).waitFor();
    rulePath = new URL(page.url()).pathname.replace("/console/", "");
    await page.reload();
    await state("paused");
    await press("Resume");
    await state("firing");
    await page.getByLabel("Threshold (percent)").fill("900");
    await press("Save");
    await page.locator(".facts").getByText("CPU is below 900%").waitFor();
    await open("Rules");
    await rule.getByRole("button", { name: "Change idle" }).click();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.locator("button:focus", { hasText: "Change idle" }).waitFor();
  });

  it("has the record of a domain, a floating IP and a login form, and stops and starts the app", async () => {
    const parts = page.getByRole("navigation", { name: "Parts of the app" });
    await parts.getByRole("link", { name: "Domains" }).click();
    await page.getByLabel("Name of the domain").fill("www.shop.example");
    await press("Add domain");
    await page.getByRole("group", { name: "the value of the record for www.shop.example" }).waitFor();
    await parts.getByRole("link", { name: "Hosting" }).click();
    await press("Assign an address");
    await page.getByRole("group", { name: "the floating IP" }).filter({ hasText: "127.92.8.2" }).waitFor();
    await press("Turn on");
    await press("Reveal the password of the form");
    const password = page.getByRole("group", { name: "the password of the form" });
    await waitUntil("the password is on the page", async () => !(await password.innerText()).includes("•"));
    await press("Hide the password of the form");
    await parts.getByRole("link", { name: "Overview" }).click();
    await press("Stop");
    await state("Stopped");
    await press("Start");
    await state("Running");
    expect(fixture.faults).toEqual([]);
  });

  it.each(looks)("has no finding of axe, $name", async ({ name, ...look }) => {
    const looked = await fixture.openSignedIn(look);
    await fixture.settled(looked);
    const ofApp = ["", "deployments", "metrics", "logs", "alerts", "events", "hosting", "attachments", "domains"];
    const ofFiles = ["", "connection", "keys", "metrics", "alerts", "logs", "events", "scaling", "settings"];
    const paths = [
      "apps",
      "files",
      "alerts",
      rulePath,
      "events",
      ...ofApp.map((tab) => `apps/${appId}/${tab}`),
      ...ofFiles.map((tab) => `files/${filesId}/${tab}`),
    ];
    for (const path of paths) {
      await looked.goto(`${fixture.platform.admin.base_url}/console/${path}`);
      await fixture.settled(looked);
      await fixture.expectAccessible(looked, `${path}, ${name}`);
      await fixture.screenshot(looked, `hosting ${titleOf(path)} ${name}`);
    }
  });

  it("deletes an alert rule from its page", async () => {
    await page.goto(`${fixture.platform.admin.base_url}/console/${rulePath}`);
    await press("Delete rule");
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox").fill("idle");
    await dialog.getByRole("button", { name: "Delete rule" }).click();
    await page.getByRole("table", { name: "Alert rules" }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/console/apps/${appId}/alerts`);
    await page.goto(`${fixture.platform.admin.base_url}/console/${rulePath}`);
    await page.getByText("There is no such alert rule").waitFor();
  });
});
