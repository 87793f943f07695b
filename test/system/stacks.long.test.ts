import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Stack, StackMigration, StackPreview, StackTemplate, UpgradePreview } from "@holdfast/sdk/index.ts";
import { createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createServices, expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const valkey = (plan: string) => ({ database_type: "valkey", plan_name: plan, storage_size_gb: 1 });
const pair = (plan: string, more: object = {}) => ({
  title: "Two caches",
  description: "One after the other.",
  resources: [
    { logical_name: "first", kind: "database", spec: valkey(plan) },
    { logical_name: "second", kind: "database", spec: { ...valkey("tier-1"), ...more } },
  ],
  dependencies: { second: ["first"] },
});

describe("stacks", () => {
  let platform: Platform;
  let templates: string;

  function writeTemplate(name: string, version: string, template: object): void {
    const folder = join(templates, "stacks", name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${version}.yaml`), JSON.stringify(template));
  }

  beforeAll(async () => {
    templates = mkdtempSync(join(tmpdir(), "holdfast-templates-"));
    writeTemplate("two-caches", "1.0.0", pair("tier-1"));
    platform = await startPlatform({ environment: { HOLDFAST_TEMPLATES: templates } });
  });
  afterAll(async () => {
    await platform?.remove();
    rmSync(templates, { recursive: true, force: true });
  });

  const cli = (...args: string[]) => {
    const line = createCommandLine({ HOLDFAST_DATA: platform.directory });
    return line.runHere(args).finally(() => line.remove());
  };
  const stack = async (id: string) => expectStatus(await platform.rest.get<Stack>(`/stacks/${id}`), 200).json;
  const upgrade = (id: string, body: object) =>
    platform.rest.post<StackMigration & { code?: string }>(`/stacks/${id}/upgrade`, body);
  const responseOf = <T>(path: string) => platform.rest.get<T>(path).catch(() => undefined);

  /** A controller reads its templates when it starts. */
  async function restartController(): Promise<void> {
    const before = platform.processes().controllers[0] ?? 0;
    killImmediately(before);
    await waitUntil("another controller answers", async () => {
      const [now] = platform.processes().controllers;
      return now !== undefined && now !== before && (await responseOf("/catalog"))?.status === 200;
    });
  }

  it("are previewed and launched at the accepted cost, or not at all", async () => {
    const { json } = await platform.rest.get<{ templates: StackTemplate[] }>("/stacks/templates");
    const offered = new Map(json.templates.map((each) => [each.name, each]));
    expect(offered.get("event-streaming")).toMatchObject({
      available: false,
      unavailable_reason: expect.stringMatching(/kafka|apps|registry/),
    });
    expect(offered.get("rag-chatbot")).toMatchObject({ available: false });
    expect(offered.get("web-database")).toMatchObject({ available: true, unavailable_reason: null });
    const preview = (await platform.rest.post<StackPreview>("/stacks/preview", { template_name: "two-caches" })).json;
    expect(preview).toMatchObject({ currency: "EUR", monthly_total: 30.4, warnings: [] });
    expect(preview.line_items.map(({ monthly_cost: cost }) => cost)).toEqual([15, 0.2, 15, 0.2]);

    const body = { name: "pair", template_name: "two-caches" };
    const launch = (body: object) =>
      platform.rest.post<Stack & { code?: string; monthly_cost?: number }>("/stacks", body);
    expect((await launch(body)).status).toBe(400);
    const drift = await launch({ ...body, accepted_monthly_cost: 30.38 });
    expect([drift.status, drift.json]).toMatchObject([409, { code: "cost_drift", monthly_cost: 30.4 }]);
    expect((await launch({ ...body, template_name: "nothing", accepted_monthly_cost: 1 })).status).toBe(404);
    const unavailable = await launch({ ...body, template_name: "event-streaming", accepted_monthly_cost: 1 });
    expect([unavailable.status, unavailable.json.code]).toEqual([422, "template_unavailable"]);
    expect((await platform.rest.get<{ services: [] }>("/managed-services")).json.services).toEqual([]);

    const launched = await cli(
      "stacks",
      "launch",
      "pair",
      "--template",
      "two-caches",
      "--accept-cost",
      "30.41",
      "--wait",
    );
    expect(launched).toMatchObject({ code: 0 });
    const repeated = await launch({ ...body, accepted_monthly_cost: 30.4 });
    expect([repeated.status, repeated.json.code]).toEqual([409, "name_taken"]);
  }, 90_000);

  it("are upgraded in place over a kill of their controller, and reject impossible upgrades", async () => {
    const { json } = await platform.rest.get<{ stacks: Stack[] }>("/stacks");
    const id = json.stacks[0]?.id ?? "";
    expect((await upgrade(id, { accepted_monthly_cost: 30.4 })).json).toMatchObject({ status: "up_to_date" });
    expect((await upgrade(id, {})).status).toBe(400);
    writeTemplate("two-caches", "1.1.0", pair("tier-1", { version: "9" }));
    await restartController();
    const blocked = (await platform.rest.post<UpgradePreview>(`/stacks/${id}/upgrade/preview`)).json;
    expect(blocked).toMatchObject({ from_version: "1.0.0", to_version: "1.1.0", blocked: true });
    expect(blocked.changes.map(({ change }) => change)).toEqual(["unchanged", "blocked"]);
    const refused = await upgrade(id, { accepted_monthly_cost: 30.4 });
    expect([refused.status, refused.json]).toMatchObject([
      422,
      { code: "upgrade_blocked", blocked_reasons: [expect.stringContaining("version")] },
    ]);

    writeTemplate("two-caches", "2.0.0", pair("tier-2"));
    await restartController();
    const preview = (await platform.rest.post<UpgradePreview>(`/stacks/${id}/upgrade/preview`)).json;
    expect(preview).toMatchObject({
      blocked: false,
      current_monthly_cost: 30.4,
      new_monthly_cost: 45.4,
      cost_delta: 15,
    });
    expect(preview.changes[0]).toMatchObject({
      change: "in_place",
      action: "scale_service",
      target_spec: { plan_name: "tier-2" },
    });
    expect((await upgrade(id, { accepted_monthly_cost: 30.4 })).json).toMatchObject({
      code: "cost_drift",
      monthly_cost: 45.4,
    });
    const migration = expectStatus(await upgrade(id, { accepted_monthly_cost: 45.4 }), 202).json;
    killImmediately(platform.processes().controllers[0] ?? 0);
    const over = await waitUntil(
      "the migration is over",
      async () => {
        const response = await responseOf<StackMigration>(`/stacks/${id}/migrations/${migration.id}`);
        return response?.status === 200 && response.json.finished_at !== null ? response.json : undefined;
      },
      { withinMs: 90_000 },
    );
    expect(over).toMatchObject({ status: "Completed", from_version: "1.0.0", to_version: "2.0.0" });
    expect(over.steps).toMatchObject([{ symbolic_name: "first", action: "scale_service", status: "Completed" }]);
    expect(await stack(id)).toMatchObject({ status: "Running", template_version: "2.0.0", monthly_cost: 45.4 });
    const first = (await stack(id)).resources[0]?.service_id ?? "";
    expect((await platform.rest.get(`/managed-services/${first}`)).json["plan_name"]).toBe("tier-2");
  }, 180_000);

  it("are deleted with all their resources", async () => {
    const { json } = await platform.rest.get<{ stacks: Stack[] }>("/stacks");
    const id = json.stacks[0]?.id ?? "";
    expect(await cli("stacks", "delete", "pair", "--yes", "--wait")).toMatchObject({ code: 0 });
    expect((await platform.rest.get(`/stacks/${id}`)).json["code"]).toBe("stack_not_found");
    expect((await platform.rest.get<{ services: [] }>("/managed-services")).json.services).toEqual([]);
  }, 90_000);

  it("need free names, leave nothing of a failed launch, and are deleted completely", async () => {
    const services = createServices(platform);
    const launch = (name: string) =>
      platform.rest.post<Stack & { code?: string }>("/stacks", {
        name,
        template_name: "two-caches",
        accepted_monthly_cost: 45.4,
      });
    const before = await services.create("broken-second", { database_type: "valkey" });
    const refused = await launch("broken");
    expect([refused.status, refused.json.code]).toEqual([409, "name_taken"]);
    expect((await platform.rest.get<{ stacks: Stack[] }>("/stacks")).json.stacks).toEqual([]);
    // The second resource waits for the first one; before it is created, another service takes its name.
    const { id } = expectStatus(await launch("late"), 201).json;
    const during = await services.create("late-second", { database_type: "valkey" });
    const failed = await waitUntil(
      "the launch is over",
      async () => {
        const current = await stack(id);
        return current.status === "Failed" ? current : undefined;
      },
      { withinMs: 90_000 },
    );
    expect(failed).toMatchObject({ resources: [], status_detail: expect.stringContaining("second") });
    const { json } = await platform.rest.get<{ services: { id: string }[] }>("/managed-services");
    expect(json.services.map((service) => service.id).toSorted()).toEqual([before.id, during.id].toSorted());
    expectStatus(await platform.rest.delete(`/stacks/${id}`), 202);
    const isDeleted = async () => (await platform.rest.get(`/stacks/${id}`)).status === 404;
    await waitUntil("the stack is deleted", isDeleted, { withinMs: 60_000 });
  }, 150_000);
});
