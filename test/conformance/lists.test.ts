import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMessage } from "@bufbuild/protobuf";
import { createControlApi } from "@holdfast/controller/admin/control-api.ts";
import { createCursors } from "@holdfast/controller/page/cursor.ts";
import { createSealer } from "@holdfast/controller/secrets/sealer.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { organizationServices, platformServices } from "../support/api-methods.ts";
import { type CommandLine, createCommandLine } from "../support/command-line.ts";
import { startTestGateway, type TestGateway } from "../support/test-gateway.ts";

const methods = [...organizationServices, ...platformServices].flatMap((service) => service.methods);

test.each(methods.filter(({ output }) => "nextCursor" in output.field).map((method) => [String(method), method]))(
  "%s takes a limit and a cursor",
  (_, { input }) => {
    const asked = input.field.page?.message ?? input;
    expect(Object.keys(asked.field)).toEqual(expect.arrayContaining(["limit", "cursor"]));
  },
);

/** What an answer has without pages, and what it is bounded by. */
// biome-ignore format: a table, aligned so that it reads as one
const whole: Readonly<Record<string, string>> = {
  "holdfast.admin.v1.AgentRollout.versions":         "100",
  "holdfast.admin.v1.ApiKey.scopes":                 "what the request could have",
  "holdfast.admin.v1.Authority.behind":              "100, and how many there are",
  "holdfast.admin.v1.Authority.trusted":             "two, while one hands over to the other",
  "holdfast.admin.v1.Host.engines":                  "the catalogue of engines",
  "holdfast.admin.v1.Host.missing_paths":            "100, and how many there are",
  "holdfast.admin.v1.Host.storage_tiers":            "settings of the host",
  "holdfast.admin.v1.HostDrain.waits_for":           "100",
  "holdfast.admin.v1.Image.engines":                 "what an image is made with",
  "holdfast.admin.v1.Image.missing_on":              "20",
  "holdfast.admin.v1.Image.newest_of":               "what an image is made with",
  "holdfast.admin.v1.ServiceMaintenance.update_ids": "an image and a restart",
  "holdfast.v1.ApiKey.scopes":                       "what the request could have",
  "holdfast.v1.Catalog.default_allowed_cidrs":       "settings of the platform",
  "holdfast.v1.Catalog.engines":                     "the catalogue of engines",
  "holdfast.v1.Catalog.metrics":                     "the catalogue of metrics",
  "holdfast.v1.Catalog.plans":                       "settings of the platform",
  "holdfast.v1.Catalog.storage_tiers":               "settings of the platform",
  "holdfast.v1.Catalog.zones":                       "settings of the platform",
  "holdfast.v1.CatalogEngine.extensions":            "the catalogue of engines",
  "holdfast.v1.CatalogEngine.parameters":            "the catalogue of engines",
  "holdfast.v1.CatalogEngine.versions":              "the catalogue of engines",
  "holdfast.v1.CatalogMetric.engines":               "the catalogue of engines",
  "holdfast.v1.Configuration.parameters":            "the catalogue of engines",
  "holdfast.v1.Connection.listeners":                "one for each way in that its engine has",
  "holdfast.v1.Connection.nodes":                    "nodes of one service",
  "holdfast.v1.ConnectionNode.addresses":            "one for each family",
  "holdfast.v1.ConnectionNode.private_addresses":    "one for each family",
  "holdfast.v1.CreatedApiKey.scopes":                "what the request could have",
  "holdfast.v1.CreatedToken.resources":              "what the request could have",
  "holdfast.v1.CreatedToken.scopes":                 "what the request could have",
  "holdfast.v1.EngineParameter.values":              "the catalogue of engines",
  "holdfast.v1.EngineParameter.versions":            "the catalogue of engines",
  "holdfast.v1.EventTypeList.values":                "the catalogue of events",
  "holdfast.v1.Health.checks":                       "checks of one service",
  "holdfast.v1.ListDeliveriesResponse.deliveries":   "100",
  "holdfast.v1.Maintenance.updates":                 "an image and a restart",
  "holdfast.v1.ManagedService.allowed_cidrs":        "what the request could have",
  "holdfast.v1.ManagedService.nodes":                "nodes of one service",
  "holdfast.v1.ManagedService.pending_updates":      "an image and a restart",
  "holdfast.v1.ManagedService.tags":                 "what the request could have",
  "holdfast.v1.Me.organizations":                    "200; ListOrganizations has all",
  "holdfast.v1.Me.scopes":                           "all scopes that there are",
  "holdfast.v1.MetricSeries.points":                 "what a period has at the finest resolution that is allowed for it",
  "holdfast.v1.Metrics.absent":                      "metrics and nodes of one service",
  "holdfast.v1.Metrics.series":                      "metrics and nodes of one service",
  "holdfast.v1.Token.resources":                     "what the request could have",
  "holdfast.v1.Token.scopes":                        "what the request could have",
};

test("everything else that an answer may have several of is bounded", () => {
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
  expect([...found].sort()).toEqual(Object.keys(whole).sort());
});

describe("lists of operators that are whole in memory", () => {
  const ids = Array.from({ length: 450 }, (_, at) => `c-${String(at).padStart(3, "0")}`);
  const kinds = ["clock", "maintenance", "restored"];
  const never = () => {
    throw new Error("a list changes nothing");
  };
  const control = createControlApi({
    members: () => ids.toReversed().map((id) => ({ id, address: `${id}:1`, startedAt: 0, draining: false })),
    sessions: () => [["m-1", { controllerId: "c-000" }]],
    holds: { list: () => kinds.toReversed().map((kind) => ({ kind, reason: "because", since: 0 })), release: never },
    cursors: createCursors(createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) })),
    begin: never,
    drain: never,
    snapshot: never,
  });
  let gateway: TestGateway;
  let shell: CommandLine;
  let directory = "";
  beforeAll(async () => {
    gateway = await startTestGateway([control]);
    directory = mkdtempSync(join(tmpdir(), "holdfast-lists-"));
    const caFile = join(directory, "ca.pem");
    writeFileSync(caFile, gateway.ca);
    const admin = { base_url: gateway.baseUrl, ca_file: caFile, username: "hfk_owner", password: "secret" };
    writeFileSync(join(directory, "admin.json"), JSON.stringify(admin));
    shell = createCommandLine({ HOLDFAST_DATA: directory });
  });
  afterAll(async () => {
    shell?.remove();
    await gateway?.close();
    rmSync(directory, { recursive: true, force: true });
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
  ])("%s goes on page by page: %s by %s, %i at once", async (method, plural, key, limit, all, lengths) => {
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
    expect(some.stdout).toMatch(/c-200[^]*These are the first 201; --limit shows more\.\n$/);
    expect(some.stdout).not.toContain("c-201");
    expect((await shell.runHere(["admin", "holds"])).stdout).toMatch(/^KIND[^]*clock[^]*restored/);
  });
});
