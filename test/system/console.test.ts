import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresql, queryOnce } from "@holdfast/testing/api/clients.ts";
import type { ConnectionJson, PageJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createConsoleUnderTest, workWaitMs } from "./console/console-under-test.ts";

/** The limit of a test: more than its waits together, each of which fails with what it waited for. */
const longMs = 600_000;

describe("the console, in Chromium", { timeout: longMs }, () => {
  const fixture = createConsoleUnderTest({ isWalk: true });
  let page: Page;
  let id = "";
  let password = "";
  beforeAll(() => fixture.start(), longMs);
  afterAll(fixture.remove, longMs);

  const tab = async (name: string) => {
    await page
      .getByRole("navigation", { name: "Parts of the service" })
      .getByRole("link", { name, exact: true })
      .click();
  };

  it("signs in by a code, which leaves no trace in the page", async () => {
    page = await fixture.openSignedIn();
    await page.getByRole("heading", { name: "Create your first database" }).waitFor();
    expect(page.url()).toBe(`${fixture.platform.admin.base_url}/console/`);
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({
      name: "__Host-holdfast",
      httpOnly: true,
      secure: true,
      sameSite: "Strict",
      path: "/",
    });
    expect(await page.evaluate("document.cookie")).toBe("");
    expect(await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")).toBe("[{},{}]");
    await page.reload();
    await page.getByRole("heading", { name: "Create your first database" }).waitFor();
  });

  it("keeps the input of a refused form, creates a service, and follows it until it runs", async () => {
    await page.getByRole("link", { name: "Create service" }).click();
    const name = page.getByLabel("Name", { exact: true });
    await name.fill("NO NAME");
    await page.getByLabel("Storage in GB").fill("1");
    await page.getByRole("button", { name: "Create service" }).click();
    await page.locator("#content .fault:visible").first().waitFor();
    expect(await page.getByLabel("Storage in GB").inputValue()).toBe("1");
    await page.reload();
    await name.waitFor();
    expect(await name.inputValue()).toBe("NO NAME");
    await name.fill("orders");
    await page.getByRole("button", { name: "Create service" }).click();
    await page.getByRole("heading", { name: "orders", level: 1 }).waitFor();
    await page.locator(".page-head .badge", { hasText: "Running" }).waitFor({ timeout: workWaitMs });
    id = page.url().split("/").at(-1) ?? "";
    await fixture.expectAccessible(page, "overview");
  });

  it("has a connection that works, and reveals the password for a while", async () => {
    await tab("Connection");
    await page.getByRole("button", { name: "Reveal the password" }).click();
    const secret = page.getByRole("group", { name: "the password", exact: true });
    await waitUntil("the password is on the page", async () => !(await secret.innerText()).includes("•"));
    password = await secret.innerText();
    const { json } = await fixture.platform.rest.get<ConnectionJson>(`/managed-services/${id}/connection`);
    expect(await page.getByRole("group", { name: "the connection" }).innerText()).toBe(
      `${json.uri}&sslrootcert=ca.pem`,
    );
    expect(await queryOnce(fixture.platform, json, { password }, "SELECT 42 AS answer")).toEqual([{ answer: 42 }]);
    await page.getByRole("button", { name: "Hide the password" }).click();
    expect(await page.content()).not.toContain(password);
  });

  it("runs a statement that reads, and rejects one that writes with the reason", async () => {
    await tab("Query");
    await page.locator(".code-editor .cm-content").waitFor();
    const statement = page.getByLabel("Statement");
    await statement.fill("SELECT 40 + 2 AS answer, '<img src=x onerror=alert(1)>' AS markup, NULL AS nothing");
    await statement.press("Control+Enter");
    await page.getByRole("cell", { name: "42" }).waitFor();
    expect(await page.getByRole("cell", { name: "<img src=x onerror=alert(1)>" }).count()).toBe(1);
    expect(await page.locator("td.cell-null").innerText()).toBe("NULL");
    // Key by key, because an editor that renders again between two keys must retain both.
    await statement.press("Control+a");
    await statement.pressSequentially("CREATE TABLE written (id int)");
    await statement.press("Escape");
    await statement.press("Control+Enter");
    await page.locator("#content .fault:visible").waitFor();
    expect(await statement.innerText()).toContain("CREATE TABLE written (id int)");
  });

  it("has only the visible cells of a result with 400 columns in the page", async () => {
    const columns = Array.from({ length: 400 }, (_, index) => `${index} AS column_${index}`).join(", ");
    const statement = page.getByLabel("Statement");
    await statement.fill(`SELECT ${columns} FROM generate_series(1, 200)`);
    await statement.press("Control+Enter");
    await page.getByRole("columnheader", { name: "column_0", exact: true }).waitFor();
    const cells = async () => page.locator(".result td").count();
    expect(await cells()).toBeLessThan(1_500);
    await page.evaluate("document.querySelector('.result').scrollTo(1e6, 1e6)");
    await page.getByRole("columnheader", { name: "column_399", exact: true }).waitFor();
    await page.locator('.result tr[aria-rowindex="201"] td[aria-colindex="400"]', { hasText: "399" }).waitFor();
    expect(await cells()).toBeLessThan(1_500);
    await fixture.expectAccessible(page, "a wide result");
  });

  it("returns to the former period of charts by Back", async () => {
    await tab("Metrics");
    const query = () => new URL(page.url()).search;
    const reset = page.getByRole("button", { name: "Show the period again" });
    await page.getByRole("button", { name: "Zoom in" }).click();
    await reset.waitFor();
    const once = query();
    await page.getByRole("button", { name: "Zoom in" }).click();
    await expect.poll(query).not.toBe(once);
    await page.goBack();
    await expect.poll(query).toBe(once);
    await page.goBack();
    await reset.waitFor({ state: "detached" });
    expect(page.url()).toMatch(/\/metrics$/);
  });

  it("shows which session blocks a query, and cancels the query", async () => {
    const { json } = await fixture.platform.rest.get<ConnectionJson>(`/managed-services/${id}/connection`);
    const open = () => openPostgresql(fixture.platform, json, { password });
    const [blocker, blocked] = await Promise.all([open(), open()]);
    await blocker.query("BEGIN; SELECT pg_advisory_lock(1)");
    const failure = blocked.query("SELECT pg_advisory_lock(1)").catch(String);
    await tab("Performance");
    const row = page.getByRole("row").filter({ hasText: "blocked by" });
    await row.getByRole("button", { name: /^Cancel/ }).click();
    expect(await failure).toContain("canceling statement due to user request");
    await row.waitFor({ state: "detached" });
    await fixture.expectAccessible(page, "performance");
    await Promise.all([blocker.end(), blocked.end()]);
  });

  it("changes a parameter, and shows why a value is refused", async () => {
    await tab("Configuration");
    await page.getByLabel("Parameters whose name contains").fill("work_mem");
    await page.getByRole("button", { name: "Change work_mem", exact: true }).click();
    const value = page.getByLabel("Value of work_mem");
    await value.fill("much");
    await page.keyboard.press("Enter");
    await page.locator("#content .fault:visible").waitFor();
    await value.fill("16MB");
    await page.keyboard.press("Enter");
    const row = page.getByRole("row").filter({ has: page.getByText("work_mem", { exact: true }) });
    await row.getByText("16MB", { exact: true }).waitFor();
    await fixture.expectAccessible(page, "configuration");
  });

  it("sets the maintenance window", async () => {
    await tab("Maintenance");
    await page.getByText("The service is up to date").waitFor();
    await page.getByLabel("Day", { exact: true }).selectOption("sunday");
    await page.getByLabel("Hours").selectOption("3");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Sunday, 03:00 to 05:00 UTC", { exact: true }).first().waitFor();
    await page.getByRole("button", { name: "Use the default" }).waitFor();
    await fixture.expectAccessible(page, "maintenance");
  });

  it("shows a change by another client without a reload", async () => {
    const renamed = await fixture.platform.rest.patch<ServiceJson>(`/managed-services/${id}`, { name: "orders-eu" });
    expect(renamed.status).toBe(200);
    await page.getByRole("heading", { name: "orders-eu", level: 1 }).waitFor();
  });

  it("adds a member with only the keyboard, and names the user who did it", async () => {
    await page.getByRole("link", { name: "Members" }).focus();
    await page.keyboard.press("Enter");
    await page.getByLabel("User name").waitFor();
    await page.getByLabel("User name").focus();
    await page.keyboard.type("vera");
    await page.keyboard.press("Enter");
    await page.getByRole("group", { name: "the setup token" }).waitFor();
    await page.getByRole("cell", { name: "vera", exact: true }).waitFor();
    await page.getByRole("link", { name: "Audit log" }).press("Enter");
    await page.getByLabel("Action, such as api-key.create").fill("member.add");
    await page
      .getByRole("row", { name: /user:admin member\.add/ })
      .first()
      .waitFor();
    await fixture.expectAccessible(page, "audit log");
  });

  it("deletes a service after its name is typed", async () => {
    await page.getByRole("link", { name: "Services" }).click();
    await page.getByRole("link", { name: "orders-eu" }).click();
    await tab("Settings");
    await page.getByRole("button", { name: "Delete service" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Type orders-eu to confirm").press("Enter");
    expect((await fixture.platform.rest.get(`/managed-services/${id}`)).status).toBe(200);
    await dialog.getByLabel("Type orders-eu to confirm").fill("orders-eu");
    await dialog.getByRole("button", { name: "Delete service" }).click();
    await page.getByRole("heading", { name: "Services", level: 1 }).waitFor();
    await page.getByRole("heading", { name: "Create your first database" }).waitFor({ timeout: workWaitMs });
    const { json } = await fixture.platform.rest.get<PageJson<"services", object>>("/managed-services");
    expect(json.services).toEqual([]);
  });

  it("signs out, and rejects a wrong password with a message", async () => {
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Password").fill("not the password");
    await page.getByLabel("User name").fill("admin");
    await page.keyboard.press("Enter");
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("alert").innerText()).toContain("wrong");
    await fixture.expectAccessible(page, "sign in");
    expect(fixture.faults).toEqual([]);
  });
});
