import { randomBytes } from "node:crypto";
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { createCursors } from "@holdfast/controller/kernel/page/cursor.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { createControlApi } from "@holdfast/controller/operator/control/control-api.ts";
import { entriesMaxOf } from "@holdfast/gateway/json/entries-max.ts";
import { rulesOf } from "@holdfast/gateway/json/field-rules.ts";
import { inlineValues } from "@holdfast/gateway/json/parse-json.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { organizationServices, platformServices } from "../support/api/api-methods.ts";
import { startTestGateway, type TestGateway } from "../support/api/test-gateway.ts";
import type { CommandLine } from "../support/platform/command-line.ts";
import { createOperatorCommandLine } from "../support/platform/operator-command-line.ts";

const methods = [...organizationServices, ...platformServices].flatMap((service) => service.methods);

test.each(methods.filter(({ output }) => "nextCursor" in output.field).map((method) => [String(method), method]))(
  "%s has a limit and a cursor",
  (_, { input }) => {
    const paging = input.field.page?.message ?? input;
    expect(Object.keys(paging.field)).toEqual(expect.arrayContaining(["limit", "cursor"]));
  },
);

/** Repeated members of responses without pages, and their bounds. */
// biome-ignore format: a table, aligned so that it reads as one
const boundsWithoutPages: Readonly<Record<string, string>> = {
  "holdfast.admin.v1.AgentRollout.versions":         "100",
  "holdfast.admin.v1.ApiKey.scopes":                 "the members of the request",
  "holdfast.admin.v1.Authority.behind":              "100, and how many there are",
  "holdfast.admin.v1.Authority.trusted":             "two, while one hands over to the other",
  "holdfast.admin.v1.ForcedFailover.positions":      "nodes of one service",
  "holdfast.admin.v1.Host.engines":                  "the catalog of engines",
  "holdfast.admin.v1.Host.missing_paths":            "100, and how many there are",
  "holdfast.admin.v1.Host.storage_tiers":            "settings of the host",
  "holdfast.admin.v1.HostDrain.waits_for":           "100",
  "holdfast.admin.v1.Image.engines":                 "the contents of an image",
  "holdfast.admin.v1.Image.missing_on":              "20",
  "holdfast.admin.v1.Image.newest_of":               "the contents of an image",
  "holdfast.admin.v1.ReconcilerStatus.failing_keys": "20, and how many there are",
  "holdfast.admin.v1.ServiceMaintenance.update_ids": "an image and a restart",
  "holdfast.v1.App.attachments":                     "10",
  "holdfast.v1.App.domains":                         "10",
  "holdfast.v1.AppAuth.idp_providers":               "10",
  "holdfast.v1.AuthClient.allowed_origins":          "the members of the request",
  "holdfast.v1.AuthClient.post_logout_redirect_uris": "the members of the request",
  "holdfast.v1.AuthClient.redirect_uris":            "the members of the request",
  "holdfast.v1.AuthIdpProvider.scopes":              "the members of the request",
  "holdfast.v1.EnabledAuth.signing_keys":            "20",
  "holdfast.v1.ListAuthClientsResponse.clients":     "20",
  "holdfast.v1.ListAuthKeysResponse.keys":           "20",
  "holdfast.v1.ApiKey.scopes":                       "the members of the request",
  "holdfast.v1.Catalog.default_allowed_cidrs":       "settings of the platform",
  "holdfast.v1.Catalog.engines":                     "the catalog of engines",
  "holdfast.v1.Catalog.metrics":                     "the catalog of metrics",
  "holdfast.v1.Catalog.plans":                       "settings of the platform",
  "holdfast.v1.Catalog.storage_tiers":               "settings of the platform",
  "holdfast.v1.Catalog.zones":                       "settings of the platform",
  "holdfast.v1.CatalogEngine.extensions":            "the catalog of engines",
  "holdfast.v1.CatalogEngine.parameters":            "the catalog of engines",
  "holdfast.v1.CatalogEngine.versions":              "the catalog of engines",
  "holdfast.v1.CatalogMetric.engines":               "the catalog of engines",
  "holdfast.v1.EnginePooler.modes":                 "modes of PgBouncer",
  "holdfast.v1.Configuration.parameters":            "the catalog of engines",
  "holdfast.v1.Connection.listeners":                "one for each way in that its engine has",
  "holdfast.v1.Connection.nodes":                    "nodes of one service",
  "holdfast.v1.ConnectionNode.addresses":            "one for each family",
  "holdfast.v1.ConnectionNode.private_addresses":    "one for each family",
  "holdfast.v1.CreatedApiKey.scopes":                "the members of the request",
  "holdfast.v1.CreatedToken.resources":              "the members of the request",
  "holdfast.v1.CreatedToken.scopes":                 "the members of the request",
  "holdfast.v1.EngineParameter.values":              "the catalog of engines",
  "holdfast.v1.EngineParameter.versions":            "the catalog of engines",
  "holdfast.v1.EventTypeList.values":                "the catalog of events",
  "holdfast.v1.Health.checks":                       "checks of one service",
  "holdfast.v1.InferenceUsage.items":                "1,000",
  "holdfast.v1.ListInferenceProvidersResponse.providers": "50",
  "holdfast.v1.ListDeliveriesResponse.deliveries":   "100",
  "holdfast.v1.ListChannelDeliveriesResponse.deliveries": "100",
  "holdfast.v1.Maintenance.updates":                 "an image and a restart",
  "holdfast.v1.ManagedService.allowed_cidrs":        "the members of the request",
  "holdfast.v1.ManagedService.nodes":                "nodes of one service",
  "holdfast.v1.ManagedService.pending_updates":      "an image and a restart",
  "holdfast.v1.ManagedService.tags":                 "the members of the request",
  "holdfast.v1.Me.organizations":                    "200; ListOrganizations has all",
  "holdfast.v1.Me.scopes":                           "all scopes that there are",
  "holdfast.v1.ListMetricsExportsResponse.integrations": "limit, 200 at most",
  "holdfast.v1.MetricsExport.warnings":              "one of each kind",
  "holdfast.v1.MetricSeries.points":                 "the points of a period at its finest resolution",
  "holdfast.v1.Metrics.absent":                      "metrics and nodes of one service",
  "holdfast.v1.Metrics.series":                      "metrics and nodes of one service",
  "holdfast.v1.Operation.warnings":                  "one of each kind and node",
  "holdfast.v1.Replication.standby_names":            "4 replicas",
  "holdfast.v1.Drill.checks":                       "checks of two restores",
  "holdfast.v1.ServiceBackups.gaps":                 "20",
  "holdfast.v1.Deployment.plan": "100 resources, and those of before",
  "holdfast.v1.Deployment.resources": "100 resources, and those of before",
  "holdfast.v1.DeployedProject.plan": "100 resources, and those of before",
  "holdfast.v1.PlanEntry.changes": "members of one spec",
  "holdfast.v1.PlanEntry.pending_changes": "members of one spec",
  "holdfast.v1.PlanEntry.drift": "members of one spec",
  "holdfast.v1.ProjectPlan.plan": "100 resources, and those of before",
  "holdfast.v1.ProjectPlan.warnings": "three",
  "holdfast.v1.Project.resources": "100 resources, and those of before",
  "holdfast.v1.ProjectDrift.resources": "100 resources, and those of before",
  "holdfast.v1.ResourceDrift.changes": "members of one spec",
  "holdfast.v1.StackTemplate.resources": "a template",
  "holdfast.v1.TemplateResource.depends_on": "a template",
  "holdfast.v1.StackPreview.line_items": "a template",
  "holdfast.v1.StackPreview.warnings": "a template",
  "holdfast.v1.Stack.resources": "a template",
  "holdfast.v1.UpgradePreview.changes": "a template",
  "holdfast.v1.UpgradePreview.blocked_reasons": "a template",
  "holdfast.v1.StackMigration.steps": "a template",
  "holdfast.v1.PipelineTemplate.services": "a template",
  "holdfast.v1.PipelineTemplateService.extensions": "a template",
  "holdfast.v1.PipelineDetail.services": "a template",
  "holdfast.v1.PipelineDetail.members": "a template",
  "holdfast.v1.PipelineDetail.connections": "a template",
  "holdfast.v1.QueryResult.columns":                 "1,600, as many as a row of PostgreSQL has",
  "holdfast.v1.QueryStatistics.queries":             "limit, 500 at most",
  "holdfast.v1.QueryStatisticsTask.queries":         "limit, 500 at most",
  "holdfast.v1.RunningQueries.queries":              "200, and whether there are more",
  "holdfast.v1.RunningQuery.blocked_by":             "sessions of one engine",
  "holdfast.v1.ClaimMessagesResponse.messages":    "100, and 4 MiB",
  "holdfast.v1.MetricSample.values":                "the requested metrics",
  "holdfast.v1.ReceiptsResponse.done":             "the members of the request",
  "holdfast.v1.ReceiptsResponse.lost":             "the members of the request",
  "holdfast.v1.Token.resources":                     "the members of the request",
  "holdfast.v1.Upgrade.findings":                    "one of each kind, and one for each parameter of the service",
  "holdfast.v1.Token.scopes":                        "the members of the request",
};

test("every other repeated member of a response is bounded", () => {
  const found = new Set<string>();
  const seen = new Set<DescMessage>();
  function walk(message: DescMessage): void {
    if (seen.has(message) || message.typeName.startsWith("google.protobuf.")) return;
    seen.add(message);
    const isPage = "nextCursor" in message.field;
    for (const field of message.fields) {
      const several = field.fieldKind === "list" || field.fieldKind === "map";
      if (several && !isPage) found.add(String(field).replace("field ", ""));
      if (field.message !== undefined) walk(field.message);
    }
  }
  for (const { output } of methods) walk(output);
  expect([...found].sort()).toEqual(Object.keys(boundsWithoutPages).sort());
});

test("no request may have more entries than the limit of values in a body", () => {
  // Methods with raw values admit more, and are parsed elsewhere.
  const entriesOf = (field: DescField, within: readonly DescMessage[]): number => {
    if (rulesOf(field).rawJson) return Number.NEGATIVE_INFINITY;
    const each = 1 + (field.message === undefined ? 0 : several(field.message, within));
    return field.fieldKind === "list" || field.fieldKind === "map" ? entriesMaxOf(field) * each : each;
  };
  const several = (message: DescMessage, within: readonly DescMessage[] = []): number =>
    within.includes(message) || message.typeName.startsWith("google.protobuf.")
      ? 1
      : message.fields.reduce((sum, field) => sum + entriesOf(field, [...within, message]), 0);
  expect(methods.filter(({ input }) => several(input) > inlineValues).map(String)).toEqual([]);
});

describe("lists of operators that are complete in memory", () => {
  const ids = Array.from({ length: 450 }, (_, at) => `c-${String(at).padStart(3, "0")}`);
  const kinds = ["clock", "maintenance", "restored"];
  const never = () => {
    throw new Error("a list changes nothing");
  };
  const store = { usedBytes: 1, quotaBytes: 2 };
  const control = createControlApi({
    members: () => ids.toReversed().map((id) => ({ id, address: `${id}:1`, startedAt: 0, draining: false })),
    sessions: () => [["m-1", { controllerId: "c-000" }]],
    automationPauses: {
      list: () => kinds.toReversed().map((kind) => ({ kind, reason: "because", since: 0, until: null })),
      set: never,
      release: never,
    },
    clock: { now: () => 0, monotonicMs: () => 0 },
    cursors: createCursors(createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) })),
    space: { stores: async () => ["b", "a"].map((name) => ({ ...store, name: `etcd ${name}` })), free: never },
    historySpace: { measure: async () => ({ ...store, name: "history" }) },
    controllerId: "c-000",
    reconcilers: () => [],
    peerReconcilers: async () => ({ reconcilers: [], unreachable: [] }),
    begin: never,
    drain: never,
    snapshot: never,
  });
  let gateway: TestGateway;
  let shell: CommandLine;
  beforeAll(async () => {
    gateway = await startTestGateway([control]);
    shell = createOperatorCommandLine(gateway);
  });
  afterAll(async () => {
    shell?.remove();
    await gateway?.close();
  });

  const ask = (method: string, page: object) =>
    gateway.call("POST", `/holdfast.admin.v1.ControlService/${method}`, {
      body: { page },
      headers: { "connect-protocol-version": "1" },
    });

  // biome-ignore format: a table
  test.each([
    ["ListControllers", "controllers", "id",   200, ids,   [200, 200, 50]],
    ["ListControllers", "controllers", "id",   0,   ids,   [50, 50, 50, 50, 50, 50, 50, 50, 50]],
    ["ListHolds",       "holds",       "kind", 2,   kinds, [2, 1]],
    ["ListHolds",       "holds",       "kind", 3,   kinds, [3]],
    ["ListStores",      "stores",      "name", 2,   ["etcd a", "etcd b", "history"], [2, 1]],
  ])("%s has pages: %s by %s, %i at once", async (method, plural, key, limit, all, lengths) => {
    const pages: string[][] = [];
    let cursor: string | undefined;
    do {
      const { status, json } = await ask(method, { limit, ...(cursor !== undefined && { cursor }) });
      expect(status).toBe(200);
      pages.push(json[plural].map((entry: Record<string, string>) => entry[key]));
      cursor = json.nextCursor;
    } while (cursor !== undefined);
    expect(pages.map(({ length }) => length)).toEqual(lengths);
    expect(pages.flat()).toEqual(all);
  });

  test("a page is never larger than 200, and a cursor is for its own list", async () => {
    expect((await ask("ListControllers", { limit: 201 })).status).toBe(400);
    const { json } = await ask("ListControllers", { limit: 1 });
    expect((await ask("ListHolds", { cursor: json.nextCursor })).status).toBe(400);
  });

  test("the command line follows the pages", async () => {
    const { code, stdout } = await shell.runHere(["--output", "json", "admin", "controllers"]);
    expect(code).toBe(0);
    expect((JSON.parse(stdout) as { id: string }[]).map(({ id }) => id)).toEqual(ids);
    const some = await shell.runHere(["admin", "controllers", "--limit", "201"]);
    expect(some.stdout).toMatch(/c-200[^]*These are the first 201 entries; use --limit for more\.\n$/);
    expect(some.stdout).not.toContain("c-201");
    expect((await shell.runHere(["admin", "holds"])).stdout).toMatch(/^KIND[^]*clock[^]*restored/);
  });
});
