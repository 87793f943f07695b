import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import { createConsoleUnderTest, looks, workWaitMs } from "./console/console-under-test.ts";

/** The limit of a test: more than its waits together, each of which fails with what it waited for. */
const longMs = 900_000;

const tabs = [
  "",
  "connection",
  "metrics",
  "alerts",
  "users",
  "backups",
  "logs",
  "events",
  "query",
  "performance",
  "queues",
  "scaling",
  "configuration",
  "maintenance",
  "settings",
];
const paths = [
  "services",
  "services?name=nothing",
  "services/new",
  "services/019a2f5e-1a00-7b11-9c22-3d44e55f6677",
  "services/deleted",
  "files",
  "events",
  "alerts",
  "projects",
  "projects/new",
  "stacks",
  "pipelines",
  "apps",
  "inference",
  "webhooks",
  "exports",
  ...["hosts", "machines", "agents", "controllers", "pauses", "maintenance", "backups", "organizations"].map(
    (tab) => `operators/${tab}`,
  ),
  "members",
  "keys",
  "tokens",
  "organization",
  "audit",
  "sessions",
  "resources",
  "resources/listWebhooks",
  "resources/createWebhook",
  "resources/getQuota",
  "design",
  "nothing",
];

interface CreatedPage {
  readonly name: string;
  readonly path: string;
}

/** Creates one resource of each kind with a page; returns the addresses of these pages. */
async function createResources({ rest }: Platform, serviceId: string): Promise<readonly CreatedPage[]> {
  const create = async (path: string, body: object) => {
    const { status, json } = await rest.post<{ id: string }>(path, body);
    expect([200, 201, 202], `${path}: ${JSON.stringify(json)}`).toContain(status);
    return json.id;
  };
  await create(`/managed-services/${serviceId}/queues`, { name: "mails" });
  const webhook = await create("/webhooks", { url: "https://hooks.example/holdfast" });
  await create(`/webhooks/${webhook}/test`, {});
  const channel = await create("/alerts/channels", {
    name: "on-call",
    type: "webhook",
    config: { url: "https://hooks.example/alerts" },
  });
  const integration = await create("/api/v1/metrics-exports", {
    name: "grafana",
    destination_type: "prometheus_remote_write",
    data_type: "metrics",
    configuration: { url: "https://metrics.example/api/v1/write", bearer_token: "t" },
  });
  const app = await create("/app-services", { name: "shop", home_url: "https://shop.example" });
  await create(`/app-services/${app}/domains`, { name: "login.shop.example" });
  await create(`/app-services/${app}/attachments`, { service_id: serviceId });
  await create("/projects/deploy", {
    descriptor: {
      name: "shop",
      resources: [{ logical_name: "cache", kind: "valkey", spec: { plan: "tier-1", storage_gb: 1 } }],
    },
  });
  return [
    { name: "queue", path: `services/${serviceId}/queues/mails` },
    { name: "webhook", path: `webhooks/${webhook}` },
    { name: "channel", path: `alerts/channels/${channel}` },
    { name: "export", path: `exports/${integration}` },
    ...["", "attachments", "domains", "sign-in", "clients", "users"].map((tab) => ({
      name: `app/${tab}`,
      path: `apps/${app}/${tab}`,
    })),
    { name: "project", path: "projects/shop" },
  ];
}

describe("each page of the console", { timeout: longMs }, () => {
  const fixture = createConsoleUnderTest();
  let service: ServiceJson;
  let created: readonly CreatedPage[] = [];
  beforeAll(async () => {
    await fixture.start();
    ({ service } = await createServices(fixture.platform).createRunning("orders", { database_type: "postgresql" }));
    created = await createResources(fixture.platform, service.id);
  }, longMs);
  afterAll(fixture.remove, longMs);

  it.each(looks)("has no finding of axe, $name", async ({ name, ...look }) => {
    const page = await fixture.openSignedIn(look);
    await fixture.settled(page);
    const base = `${fixture.platform.admin.base_url}/console`;
    const opened = [
      ...paths.map((path) => ({ name: path, path })),
      ...tabs.map((tab) => ({ name: `services/orders/${tab}`, path: `services/${service.id}/${tab}` })),
      ...created,
    ];
    for (const { name: title, path } of opened) {
      await page.goto(`${base}/${path}`);
      await fixture.settled(page);
      await fixture.expectAccessible(page, `${path}, ${name}`);
      await fixture.screenshot(page, `${title} ${name}`);
    }
    await page.goto(`${base}/services/${service.id}/settings`);
    await page.getByRole("button", { name: "Delete service" }).click();
    await page.getByRole("dialog").waitFor();
    await fixture.expectAccessible(page, `a dialog, ${name}`);
    await fixture.screenshot(page, `dialog ${name}`);
  });

  it("adds a node, makes it the primary, and removes the other one", async () => {
    const page = await fixture.openSignedIn();
    await fixture.settled(page);
    await page.goto(`${fixture.platform.admin.base_url}/console/services/${service.id}`);
    const nodes = page.getByRole("table", { name: "Nodes" });
    await page.getByRole("button", { name: /^Add a node/ }).click();
    const replica = nodes.getByRole("row").filter({ hasText: "replica" });
    await replica.getByText("Running", { exact: true }).waitFor({ timeout: workWaitMs });
    const added = await replica.locator("td.mono, td .mono").innerText();
    const makePrimary = replica.getByRole("button", { name: "Make primary", exact: true });
    await makePrimary.click();
    const primary = nodes.getByRole("row").filter({ hasText: "primary" }).filter({ hasText: added });
    await primary.waitFor({ timeout: workWaitMs });
    await fixture.expectAccessible(page, "two nodes");
    await replica.getByRole("button", { name: "Remove", exact: true }).click();
    const dialog = page.getByRole("dialog");
    const name = (await dialog.locator("label").innerText()).split(" ")[1] ?? "";
    await dialog.getByRole("textbox").fill(name);
    await dialog.getByRole("button", { name: "Remove node" }).click();
    await replica.waitFor({ state: "detached", timeout: workWaitMs });
  });

  it("verifies a backup, changes the schedule, and forks the service", async () => {
    const page = await fixture.openSignedIn();
    await fixture.settled(page);
    await page.goto(`${fixture.platform.admin.base_url}/console/services/${service.id}/backups`);
    await page.getByRole("button", { name: "Take a backup" }).click();
    await page.getByRole("button", { name: /^Verify/ }).click({ timeout: workWaitMs });
    const verified = page.getByRole("table", { name: "Backups" }).locator("[data-title=Verified] time");
    await verified.waitFor({ timeout: workWaitMs });
    await page.getByLabel("Time of the daily backup, in UTC").fill("03:05");
    await page.getByLabel("Days that automated backups are retained").fill("9");
    await page.locator("section", { hasText: "Schedule" }).getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    const settings = await fixture.platform.rest.get(`/managed-services/${service.id}/backup-settings`);
    expect(settings.json).toMatchObject({ hour: 3, minute: 5, retention_days: 9 });
    await page.getByLabel("Name of the fork").fill("No name");
    await page.getByRole("button", { name: "Create the fork" }).click();
    await page.getByText("Must be 1 to 40 lower-case letters").waitFor();
    await page.getByLabel("Name of the fork").fill("copy");
    await page.getByRole("button", { name: "Create the fork" }).click();
    await page.getByRole("heading", { name: "copy", level: 1 }).waitFor();
  });

  it("resets a password, which is on the page once it is revealed, and deletes a database", async () => {
    const page = await fixture.openSignedIn();
    await fixture.settled(page);
    await page.goto(`${fixture.platform.admin.base_url}/console/services/${service.id}/users`);
    const confirm = async (button: string, name: string) => {
      const dialog = page.getByRole("dialog");
      await dialog.getByRole("textbox").fill(name);
      await dialog.getByRole("button", { name: button }).click();
    };
    await page.getByRole("button", { name: "Reset password" }).click();
    await confirm("Reset password", "app_user");
    await page.getByText("The new password of app_user").waitFor();
    await page.getByRole("button", { name: "Reveal the new password" }).click();
    const path = `/managed-services/${service.id}/database-users/app_user/reveal-password`;
    const { json } = await fixture.platform.rest.post<{ password: string }>(path, {});
    expect(await page.getByRole("group", { name: "the new password" }).innerText()).toBe(json.password);
    await fixture.expectAccessible(page, "a new password");
    await page.getByLabel("Name of the database").fill("junk");
    await page.getByRole("button", { name: "Add database" }).click();
    const row = page.getByRole("table", { name: "Databases" }).getByRole("row").filter({ hasText: "junk" });
    await row.getByRole("button", { name: "Delete" }).click();
    await confirm("Delete database", "junk");
    await row.waitFor({ state: "detached" });
  });

  it("changes the user's password, which ends the other sessions and not this one", async () => {
    const { rest, operator } = fixture.platform;
    const [former, next] = ["four words that rhyme", "five other words that do not"];
    const platform = rest.as(operator);
    const { json } = await platform.post<{ setup_token: string }>("/users", { username: "nora" });
    await platform.post("/users/setup", { token: json.setup_token, password: former });
    const { json: me } = await rest.get<{ organization_id: string }>("/me");
    await rest.post(`/organizations/${me.organization_id}/members`, { user_id: "nora", role: "viewer" });
    const signIn = async (password: string) => {
      const page = await fixture.open("sessions");
      await page.getByLabel("User name").fill("nora");
      await page.getByLabel("Password").fill(password);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByLabel("Current password").waitFor();
      return page;
    };
    const other = await signIn(former);
    const page = await signIn(former);
    await page.getByLabel("Current password").fill("another one");
    await page.getByLabel("New password", { exact: true }).fill(next);
    await page.getByLabel("New password, again").fill(next);
    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByText("Is not the current password.").waitFor();
    expect(await page.getByLabel("New password", { exact: true }).inputValue()).toBe(next);
    await page.getByLabel("Current password").fill(former);
    await page.getByRole("button", { name: "Change password" }).click();
    await page.getByText("Changed: your other sessions have ended").waitFor();
    expect(await page.getByLabel("New password", { exact: true }).inputValue()).toBe("");
    await other.reload();
    await other.getByRole("button", { name: "Sign in" }).waitFor();
    await signIn(next);
  });

  it("saves the edited settings alone, and shows the changes of another client in the others", async () => {
    const { rest, admin } = fixture.platform;
    const path = `/managed-services/${service.id}`;
    const page = await fixture.openSignedIn();
    await fixture.settled(page);
    await page.goto(`${admin.base_url}/console/services/${service.id}/settings`);
    await page.getByLabel("Name", { exact: true }).fill("renamed");
    await rest.patch(path, { deletion_protection: true, allowed_cidrs: ["127.0.0.0/8", "10.8.0.0/16"] });
    await page.getByLabel("Protect from deletion").and(page.locator(":checked")).waitFor();
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("renamed");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved", { exact: true }).waitFor();
    expect((await rest.get(path)).json).toMatchObject({
      name: "renamed",
      deletion_protection: true,
      allowed_cidrs: ["127.0.0.0/8", "10.8.0.0/16"],
    });
    await rest.patch(path, { name: "orders", deletion_protection: false });
  });

  it("proposes a time to restore that it accepts, with seconds", async () => {
    const page = await fixture.openSignedIn();
    await fixture.settled(page);
    await page.goto(`${fixture.platform.admin.base_url}/console/services/${service.id}/backups`);
    const time = page.getByLabel("Time, in your local time zone");
    await time.waitFor();
    expect(await time.and(page.locator(":valid")).count()).toBe(1);
    await time.fill("2030-01-01T00:00:01");
    expect(await time.and(page.locator(":valid")).count()).toBe(1);
  });

  it("keeps the input of a form when the session ends, until the same user signs in again", async () => {
    const { admin } = fixture.platform;
    const page = await fixture.openSignedIn();
    await fixture.settled(page);
    await page.goto(`${admin.base_url}/console/webhooks`);
    await page.getByLabel("Address", { exact: true }).fill("https://kept.example/hook");
    await page.context().clearCookies();
    await page.getByRole("button", { name: /webhook/ }).click();
    await page.getByText("Your session has ended").waitFor();
    await page.getByLabel("User name").fill(admin.username);
    await page.getByLabel("Password").fill(admin.password);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Webhooks", level: 1 }).waitFor();
    expect(await page.getByLabel("Address", { exact: true }).inputValue()).toBe("https://kept.example/hook");
  });

  it("lets a new user set the first password in the browser", async () => {
    const page = await fixture.openSignedIn();
    await fixture.settled(page);
    await page.goto(`${fixture.platform.admin.base_url}/console/members`);
    await page.getByLabel("User name").fill("olga");
    await page.getByRole("button", { name: "Add user" }).click();
    const link = await page.getByRole("group", { name: "the link to set the password" }).innerText();
    const first = await fixture.open(new URL(link.trim()).hash);
    await first.getByRole("heading", { name: "Set your password" }).waitFor();
    expect(first.url()).not.toContain("set_up");
    await fixture.expectAccessible(first, "the first password");
    await fixture.screenshot(first, "first password");
    await first.getByLabel("Password", { exact: true }).fill("short");
    await first.getByLabel("Password, again").fill("short");
    await first.getByRole("button", { name: "Set password" }).click();
    await first.getByText("Correct the marked fields.").waitFor();
    await first.getByLabel("Password", { exact: true }).fill("six words that nobody has used");
    await first.getByLabel("Password, again").fill("six words that nobody has used");
    await first.getByRole("button", { name: "Set password" }).click();
    await first.getByText("olga").waitFor();
  });

  it("changes a queue and an export, and resets the password of a member", async () => {
    const { rest, admin } = fixture.platform;
    const page = await fixture.openSignedIn();
    await fixture.settled(page);
    const open = (name: string) =>
      page.goto(`${admin.base_url}/console/${created.find((each) => each.name === name)?.path ?? ""}`);
    const settings = page.locator("section", { hasText: "Settings" });
    const save = settings.getByRole("button", { name: "Save" });
    const saved = page.getByText("Saved", { exact: true });
    await open("queue");
    await page.getByLabel("Attempts", { exact: true }).fill("0");
    await save.click();
    await page.locator("#content .fault:visible").waitFor();
    await page.getByLabel("Attempts", { exact: true }).fill("7");
    await save.click();
    await saved.waitFor();
    await fixture.screenshot(page, "queue settings");
    const queue = await rest.get(`/managed-services/${service.id}/queues/mails`);
    expect(queue.json).toMatchObject({ max_attempts: 7, visibility_timeout_seconds: 30, dlq_enabled: true });
    await open("export");
    await page.getByLabel("Interval in seconds").fill("90");
    await page.getByLabel("Tenant").fill("shop");
    await save.click();
    await settings.getByText(/^Must be given again/).waitFor();
    await page.getByLabel("Bearer token").fill("another token");
    await save.click();
    await saved.waitFor();
    await expect.poll(() => page.getByLabel("Bearer token").inputValue()).toBe("");
    await fixture.screenshot(page, "export settings");
    const integrations = await rest.get<{ integrations: object[] }>("/api/v1/metrics-exports");
    expect(integrations.json.integrations).toEqual([
      expect.objectContaining({
        export_interval_seconds: 90,
        configuration: expect.objectContaining({ tenant_id: "shop", url: "https://metrics.example/api/v1/write" }),
      }),
    ]);
    await page.goto(`${admin.base_url}/console/members`);
    await page.getByLabel("User name").fill("paul");
    await page.getByRole("button", { name: "Add user" }).click();
    const token = page.getByRole("group", { name: "the setup token" });
    const first = await token.innerText();
    await page.reload();
    const row = page.getByRole("row").filter({ hasText: "paul" });
    await row.getByRole("button", { name: "Reset password" }).click();
    await page.getByRole("dialog").getByRole("textbox").fill("paul");
    await page.getByRole("dialog").getByRole("button", { name: "Reset password" }).click();
    await token.waitFor();
    expect(await token.innerText()).not.toBe(first);
    await fixture.expectAccessible(page, "a reset password");
    await fixture.screenshot(page, "reset password");
  });

  it("creates a token of some services, which sees these alone", async () => {
    const page = await fixture.openSignedIn();
    await fixture.settled(page);
    await page.goto(`${fixture.platform.admin.base_url}/console/tokens`);
    await page.getByLabel("Accesses").selectOption("services");
    await page.getByLabel("orders", { exact: true }).check();
    await page.getByLabel("services:read").check();
    await page.getByRole("button", { name: "Create token" }).click();
    const bearer = page.getByRole("group", { name: "the token" });
    await bearer.waitFor();
    await fixture.expectAccessible(page, "a limited token");
    await fixture.screenshot(page, "tokens limited");
    const row = page.getByRole("row").filter({ has: page.getByRole("link", { name: "orders", exact: true }) });
    await row.getByText(/^May not see: .*everything else of the organization$/).waitFor();
    const limited = fixture.platform.rest.as(`Bearer ${(await bearer.innerText()).trim()}`);
    const { json } = await limited.get<{ services: ServiceJson[] }>("/managed-services");
    expect(json.services.map(({ name }) => name)).toEqual(["orders"]);
  });

  it.each(looks)("the page to sign in has no finding of axe, $name", async ({ name, ...look }) => {
    const page = await fixture.open("services", look);
    await page.getByLabel("User name").waitFor();
    await fixture.expectAccessible(page, `sign in, ${name}`);
    await fixture.screenshot(page, `sign in ${name}`);
  });
});
