import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { createServices, type RunningService } from "@holdfast/testing/platform/services.ts";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createConsoleUnderTest, looks, workWaitMs } from "./console/console-under-test.ts";
import { openSearch } from "./opensearch/opensearch-service.ts";
import { batchOnce } from "./tsql/tsql-service.ts";

// Pages of services whose engine has parts that others lack: topics, indices, an assessment of scripts, documents.

const skip = await requireRecipes(import.meta.filename, "kafka", "opensearch", "tsql", "mongodb");
/** The limit of a test: more than its waits together, each of which fails with what it waited for. */
const longMs = 900_000;
/** Tabs of each service whose content depends on the engine. */
const commonTabs = ["", "connection", "users", "configuration", "metrics"];

describe.skipIf(skip !== undefined)("services with parts of their engine in the console", { timeout: longMs }, () => {
  const fixture = createConsoleUnderTest();
  let page: Page;
  beforeAll(async () => {
    await fixture.start();
    page = await fixture.openSignedIn();
    await page.getByRole("heading", { name: "Services", level: 1 }).waitFor();
  }, longMs);
  afterAll(fixture.remove, longMs);

  const urlOf = (path: string) => `${fixture.platform.admin.base_url}/console/${path}`;
  const press = async (name: string) => page.getByRole("button", { name, exact: true }).click();

  /** Runs the visit of a running service of the engine, and deletes it, since a host has not the memory for all. */
  async function withService(engine: string, visit: (service: RunningService) => Promise<void>): Promise<void> {
    const services = createServices(fixture.platform);
    const { id } = await services.create(`my-${engine}`, { database_type: engine });
    await services.settled(id, "Running", workWaitMs);
    await visit(await services.open(id));
    await services.delete(id);
    expect(fixture.faults).toEqual([]);
  }

  /** Expects these pages of the service to be accessible in each look. */
  async function expectPages({ service }: RunningService, paths: readonly string[]): Promise<void> {
    for (const { name, ...look } of looks) {
      const looked = await fixture.openSignedIn(look);
      await fixture.settled(looked);
      for (const path of [...commonTabs, ...paths]) {
        await looked.goto(urlOf(`services/${service.id}/${path}`));
        await fixture.settled(looked);
        await fixture.expectAccessible(looked, `${service.name} ${path}, ${name}`);
        await fixture.screenshot(looked, `${service.name} ${path} ${name}`);
      }
    }
  }

  it("has topics and consumer groups", async () => {
    await withService("kafka", async (bus) => {
      const { id } = bus.service;
      await page.goto(urlOf(`services/${id}/topics`));
      await page.getByText("No topics yet").waitFor();
      await page.getByText("No consumer groups").waitFor();
      await page.getByLabel("Name", { exact: true }).fill("orders");
      await page.getByLabel("Partitions", { exact: true }).fill("3");
      await page.getByLabel("Settings", { exact: true }).fill("retention.ms");
      await page.getByText("retention.ms has no value: write retention.ms=value.").first().waitFor();
      await page.getByLabel("Settings", { exact: true }).fill("retention.ms=86400000");
      await press("Create topic");
      await page.getByRole("table", { name: "Topics" }).getByText("1 set").waitFor();
      const kafka = serviceKafka(fixture.platform, bus);
      const [producer, admin] = [kafka.producer(), kafka.admin()];
      await producer.connect();
      await producer.send({
        topic: "orders",
        messages: [
          { partition: 1, value: "a" },
          { partition: 1, value: "b" },
        ],
      });
      await producer.disconnect();
      await admin.connect();
      await admin.setOffsets({ groupId: "billing", topic: "orders", partitions: [{ partition: 1, offset: "2" }] });
      await admin.disconnect();
      await page.getByRole("link", { name: "orders", exact: true }).click();
      await page.getByRole("heading", { name: "orders", level: 1 }).waitFor();
      await page.getByRole("table", { name: "Partitions" }).getByText("0 to 2").waitFor();
      await page.getByRole("spinbutton", { name: "Partitions" }).fill("4");
      await press("Save");
      await page.getByRole("table", { name: "Partitions" }).getByRole("row").nth(4).waitFor();
      await page.getByRole("link", { name: "Topics", exact: true }).click();
      await page.getByRole("link", { name: "billing", exact: true }).click();
      await page.getByRole("heading", { name: "billing", level: 1 }).waitFor();
      await page.getByText("0 records").first().waitFor();
      await press("Set offsets");
      await page.locator(".facts").getByText("2 records").waitFor();
      await expectPages(bus, ["topics", "topics/orders", "groups/billing"]);
      await press("Delete group");
      await page.getByRole("dialog").getByRole("textbox").fill("billing");
      await page.getByRole("dialog").getByRole("button", { name: "Delete group" }).click();
      await page.getByText("No consumer groups").waitFor();
    });
  });

  it("has indices of documents", async () => {
    await withService("opensearch", async (logs) => {
      const { id } = logs.service;
      await page.goto(urlOf(`services/${id}/indices`));
      await page.getByText("No indices yet").waitFor();
      const client = openSearch(fixture.platform, logs);
      await client.index({ index: "orders", id: "1", body: { n: 1 }, refresh: true });
      await client.index({ index: "bills", id: "1", body: { n: 1 }, refresh: true });
      await client.close();
      const table = page.getByRole("table", { name: "Indices" });
      await table.getByRole("row").filter({ hasText: "bills" }).waitFor();
      await expectPages(logs, ["indices"]);
      await table.getByRole("row").filter({ hasText: "bills" }).getByRole("button", { name: "Delete" }).click();
      await page.getByRole("dialog").getByRole("textbox").fill("bills");
      await page.getByRole("dialog").getByRole("button", { name: "Delete index" }).click();
      await table.getByRole("row").filter({ hasText: "bills" }).waitFor({ state: "detached" });
      await table.getByRole("row").filter({ hasText: "orders" }).waitFor();
    });
  });

  /** A batch with a feature of T-SQL that no version has here, since services have no linked servers. */
  const unsupported = "SELECT * FROM OPENQUERY(other, 'SELECT 1')";

  it("assesses a script, and lists what clients used and the service lacks", async () => {
    await withService("tsql", async (erp) => {
      const { id } = erp.service;
      await page.goto(urlOf(`services/${id}/compatibility`));
      await page.getByText("Clients used none").waitFor();
      await page.getByLabel("Script").fill(`CREATE TABLE t (id int);\nGO\n${unsupported}`);
      await press("Assess");
      const findings = page.getByRole("table", { name: "Findings" });
      await findings.getByText("unsupported", { exact: true }).first().waitFor();
      await fixture.expectAccessible(page, "findings");
      await fixture.screenshot(page, "my-tsql findings");
      await batchOnce(fixture.platform, erp, unsupported);
      await page.getByRole("table", { name: "Unsupported features that clients used" }).waitFor();
      await expectPages(erp, ["compatibility"]);
    });
  });

  it("has users, databases and parameters of documents", async () => {
    await withService("mongodb", (docs) => expectPages(docs, ["backups", "scaling"]));
  });
});
