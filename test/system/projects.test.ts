import { environmentOf } from "@holdfast/controller/services/resource-kind/environment-of.ts";
import { PipelineService, PipelineStatus } from "@holdfast/proto/holdfast/v1/pipeline_pb.ts";
import { ProjectService, ProjectStatus } from "@holdfast/proto/holdfast/v1/project_pb.ts";
import { StackService, StackStatus } from "@holdfast/proto/holdfast/v1/stack_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Deployment, Pipeline, PipelineDetail, Project, ProjectPlan, Stack } from "@holdfast/sdk/index.ts";
import { type BundleFixture, startBundleFixture, valkeySpec } from "@holdfast/testing/composition/bundle-fixture.ts";
import { openDatabaseUrl, openValkeyUrl } from "@holdfast/testing/composition/open-url.ts";
import { outputsOf } from "@holdfast/testing/composition/outputs-of.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { createOrganizations, grpcAs } from "@holdfast/testing/platform/organizations.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { createServices, expectStatus, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

// One platform, on which a project, a stack and a pipeline are created together: each test continues from the state of
// those before it.

const small = { plan: "tier-1", storage_gb: 1 };
const shop = {
  name: "shop",
  resources: [
    { logical_name: "orders", kind: "postgres", spec: { ...small, tags: { team: "shop" } } },
    { logical_name: "people", kind: "postgres", spec: small },
    { logical_name: "cache", kind: "valkey", spec: { ...small, tags: { marked: "marked-descriptor" } } },
  ],
  dependencies: { people: ["orders"] },
};
const third = { logical_name: "third", kind: "valkey", spec: small };
const oneCache = (plan: string) => ({
  title: "A cache",
  description: "A Valkey.",
  resources: [{ logical_name: "cache", kind: "database", spec: valkeySpec(plan) }],
});
const modelsToo = { ...oneCache("tier-1"), requirements: { inference_provider: true } };
const testPair = {
  title: "Test",
  description: "Databases that are there.",
  resources: [
    { logical_name: "hot", kind: "database", role: "cache", spec: valkeySpec() },
    { logical_name: "cold", kind: "database", role: "event-store", spec: valkeySpec() },
  ],
};

describe("projects, stacks and pipelines", () => {
  let fixture: BundleFixture;
  let services: Services;
  let cli: BundleFixture["cli"];
  let rest: BundleFixture["platform"]["rest"];

  beforeAll(async () => {
    fixture = await startBundleFixture((write) => {
      write("stacks", "one-cache", "1.0.0", oneCache("tier-1"));
      write("stacks", "models-too", "1.0.0", modelsToo);
      write("pipelines", "test-pair", "1.0.0", testPair);
    });
    ({ cli } = fixture);
    ({ rest } = fixture.platform);
    services = createServices(fixture.platform);
  });
  afterAll(() => fixture?.remove());

  const idOf = async (logicalName: string, name = "shop") =>
    (await fixture.project(name)).resources.find((each) => each.logical_name === logicalName)?.resource_id ?? "";
  const stackNow = async () => {
    const { stacks } = (await rest.get<{ stacks: Stack[] }>("/stacks")).json;
    const [stack] = stacks;
    if (stack === undefined) throw new Error("there is no stack");
    return stack;
  };
  const pipelineNow = async (as = rest) => {
    const { pipelines } = (await as.get<{ pipelines: Pipeline[] }>("/pipelines")).json;
    return (await as.get<PipelineDetail>(`/pipelines/${pipelines[0]?.id}`)).json;
  };
  const printed = async (...args: readonly string[]) => {
    const ran = await cli(...args);
    expect([args.join(" "), ran.code, ran.code === 0 ? "" : ran.stderr]).toEqual([args.join(" "), 0, ""]);
    return ran.stdout;
  };

  it("preview their resources and costs, and create nothing", async () => {
    const file = fixture.fileOf(shop);
    expect((await cli("projects", "init", "-f", file)).code).toBe(2);
    await printed("projects", "validate", "-f", file);
    const planned = await printed("projects", "plan", "-f", file);
    expect(planned).toMatch(/\+ orders\s+postgres\s+create/);
    expect(planned).toMatch(/Cost a month: 0\.00 -> 45\.60 EUR/);
    expect((await rest.get("/projects/shop")).json["code"]).toBe("project_not_found");
    expect((await cli("projects", "plan", "-f", file, "--check")).code).toBe(1);

    const templates = await printed("stacks", "templates");
    expect(templates).toMatch(/one-cache/);
    expect(templates).toMatch(/event-streaming.*(kafka|apps|registry)/);
    expect(await printed("stacks", "preview", "one-cache")).toContain("15.20 EUR a month");
    const launch = (body: object) =>
      rest.post<{ code: string; monthly_cost?: number }>("/stacks", { name: "c", template_name: "one-cache", ...body });
    expect((await launch({})).status).toBe(400);
    const drift = await launch({ accepted_monthly_cost: 15.18 });
    expect([drift.status, drift.json]).toMatchObject([409, { code: "cost_drift", monthly_cost: 15.2 }]);
    expect((await launch({ template_name: "none", accepted_monthly_cost: 1 })).status).toBe(404);
    for (const name of ["event-streaming", "rag-chatbot"]) {
      const unavailable = await launch({ template_name: name, accepted_monthly_cost: 1 });
      expect([unavailable.status, unavailable.json.code]).toEqual([422, "template_unavailable"]);
    }
    const modelless = { template_name: "models-too", accepted_monthly_cost: 1 };
    expect((await launch(modelless)).json.code).toBe("inference_not_configured");
    const organizations = createOrganizations(fixture.platform);
    const provider = { provider: "provider_a", api_key: "a-key", enabled: true };
    const path = `/organizations/${await organizations.first()}/inference/providers`;
    expectStatus(await rest.call("PUT", path, { body: provider }), 200);
    organizations.close();
    expect((await launch(modelless)).json.code).toBe("cost_drift");

    const offered = await printed("pipelines", "templates");
    expect(offered).toMatch(/rag-pipeline.*[Ee]xtension/);
    expect(offered).toContain("event-analytics");
    expect(offered).toContain("recommendation-engine");
    const projectBody = { template_id: "test-pair", name: "events", zone: "local" };
    const create = async (body: object) => (await rest.post("/pipelines", { ...projectBody, ...body })).status;
    expect(await create({ template_id: "nothing" })).toBe(404);
    expect(await create({ template_id: "rag-pipeline" })).toBe(422);
    expect(await create({ zone: "moon" })).toBe(400);
    expect(await create({ plan_name: "tier-99" })).toBe(400);
    expect(await create({ organization_id: "other" })).toBe(403);
    expect((await rest.get<{ services: [] }>("/managed-services")).json.services).toEqual([]);
  });

  it("report all faults of a descriptor together, and kinds that are not supported yet", async () => {
    const invalid = {
      name: "Shop",
      resources: [
        { logical_name: "a", kind: "postgres", spec: { plan: "tier-99" } },
        { logical_name: "a", kind: "postgres", spec: {} },
        { logical_name: "b", kind: "valkey", spec: { disk: 1 } },
        { logical_name: "c", kind: "oracle" },
      ],
      dependencies: { a: ["c"], b: ["b", "d"], c: ["a"] },
    };
    const plan = (descriptor: object) =>
      rest.post<{ code: string; errors: { field: string; code: string }[] }>("/projects/plan", { descriptor });
    const refused = await plan(invalid);
    expect([refused.status, refused.json.code]).toEqual([400, "invalid_descriptor"]);
    expect(refused.json.errors.map(({ field, code }) => `${field} ${code}`)).toEqual([
      "name pattern",
      "resources[2].spec.disk unknown_field",
      "resources[3].kind unknown",
      "resources[1].logical_name duplicate",
      "dependencies.b[0] own_dependency",
      "dependencies.b[1] unknown",
      "dependencies cycle",
      "resources[0].spec.plan_name unknown",
    ]);
    expect(refused.text).toContain("a -> c -> a");
    const validation = await cli("projects", "validate", "-f", fixture.fileOf(invalid));
    expect(validation.code).toBe(2);
    expect(validation.stderr).toContain("dependencies: has a cycle");
    const toCome = await plan({ name: "shop", resources: [{ logical_name: "web", kind: "inference" }] });
    expect([toCome.status, toCome.json.code]).toEqual([422, "kind_not_available"]);
    const noImage = await plan({ name: "shop", resources: [{ logical_name: "web", kind: "app" }] });
    expect([noImage.status, noImage.json.code]).toEqual([400, "invalid_descriptor"]);
    const { text } = await rest.as(undefined).get("/schemas/project.json");
    expect(JSON.parse(text)).toMatchObject({ title: "Holdfast project" });
    const drifted = await rest.post("/projects/deploy", { descriptor: shop, plan_digest: "sha256:other" });
    expect([drifted.status, drifted.json["code"]]).toEqual([409, "plan_changed"]);
  });

  it("are created completely and in order, though their controller is killed", async () => {
    const file = fixture.fileOf(shop);
    const launching = printed("stacks", "launch", "cached", "--template", "one-cache", "--accept-cost", "15.21");
    const creating = printed("pipelines", "create", "events", "--template", "test-pair");
    const applied = cli("projects", "apply", "-f", file, "--yes");
    await waitUntil("a database is being created", async () => {
      const { json } = await rest.get<Project>("/projects/shop");
      return json.resources?.some(({ status }) => status === "Provisioning");
    });
    expect(await launching).toMatch(/Pending|Provisioning/);
    expect(await creating).toContain("deploying");
    const busy = await fixture.deploy(shop);
    expect([busy.status, busy.json.code]).toEqual([409, "project_busy"]);
    // The next controller has another version of the stack's template.
    fixture.writeTemplate("stacks", "one-cache", "2.0.0", oneCache("tier-2"));
    killImmediately(fixture.platform.processes().controllers[0] ?? 0);
    const { code, stderr } = await applied;
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);

    const created = await fixture.project("shop");
    expect(created).toMatchObject({ status: "Running", health: "healthy", monthly_cost: 45.6 });
    expect(created.resources.map(({ status }) => status)).toEqual(["Running", "Running", "Running"]);
    const { services: all } = (
      await rest.get<{ services: { name: string; created_at: string }[] }>("/managed-services")
    ).json;
    expect(all.map(({ name }) => name).toSorted()).toEqual([
      "cached-cache",
      "events-cold",
      "events-hot",
      "shop-cache",
      "shop-orders",
      "shop-people",
    ]);
    const madeAt = (name: string) => all.find((service) => service.name === name)?.created_at ?? "";
    expect(madeAt("shop-people") > madeAt("shop-orders")).toBe(true);
    await waitUntil("the stack runs", async () => (await stackNow()).status === "Running", { withinMs: 60_000 });
    await waitUntil("the pipeline runs", async () => (await pipelineNow()).status === "running", { withinMs: 60_000 });
    const duplicate = await rest.post("/stacks", {
      name: "cached",
      template_name: "one-cache",
      accepted_monthly_cost: 30.2,
    });
    expect([duplicate.status, duplicate.json["code"]]).toEqual([409, "name_taken"]);
    const twice = await rest.post("/pipelines", { template_id: "test-pair", name: "events", zone: "local" });
    expect([twice.status, twice.json["code"]]).toEqual([409, "name_taken"]);
  }, 120_000);

  it("give consumers all that they need to connect to their databases", async () => {
    const of = async (name: string) => ({
      prefix: name.toUpperCase(),
      outputs: outputsOf(await services.open(await idOf(name))),
    });
    const { admin } = fixture.platform;
    const consumer = { apiToken: "t", apiUrl: admin.base_url, caFile: admin.ca_file };
    const several = environmentOf(consumer, [await of("orders"), await of("people"), await of("cache")]);
    for (const name of ["ORDERS_DATABASE_URL", "PEOPLE_DATABASE_URL"]) {
      const client = await openDatabaseUrl(fixture.platform, several[name] ?? "");
      expect((await client.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
      await client.end();
    }
    const { DATABASE_URL: only = "" } = environmentOf(consumer, [await of("orders")]);
    await (await openDatabaseUrl(fixture.platform, only)).end();
    const { connections, services: names } = await pipelineNow();
    expect(names).toEqual(["events-hot", "events-cold"]);
    expect(connections.map(({ role }) => role)).toEqual(["cache", "event-store"]);
    const uris = connections.map((each) => each.connections.connection_uri ?? "");
    for (const uri of [several["CACHE_URL"] ?? "", ...uris]) {
      const client = await openValkeyUrl(fixture.platform, uri);
      expect(await client.ping()).toBe("PONG");
      client.disconnect();
    }
    const organizations = createOrganizations(fixture.platform);
    const reader = await organizations.createKey(await organizations.first(), ["pipelines:read"]);
    const visible = await pipelineNow(rest.as(reader.authorization));
    expect(visible.connections.map((each) => each.connections.connection_uri)).toEqual([null, null]);
    organizations.close();
  });

  it("are noop when they are applied again, and change nothing", async () => {
    const before = (await rest.get("/managed-services")).text;
    const secondApply = await printed("projects", "apply", "-f", fixture.fileOf(shop), "--yes");
    expect(secondApply).toMatch(/orders\s+postgres\s+noop/);
    expect(secondApply).toContain("Nothing is changed.");
    const { last_deployment_id: id } = await fixture.project("shop");
    const record = await fixture.ended("shop", id);
    expect(record).toMatchObject({ status: "Completed", project_status: "Running" });
    expect(record.plan.map(({ action }) => action)).toEqual(["noop", "noop", "noop"]);
    expect((await rest.get("/managed-services")).text).toBe(before);
    expect((await cli("projects", "plan", "-f", fixture.fileOf(shop), "--check")).code).toBe(0);
    const [orders, ...others] = shop.resources;
    const changed = { ...shop, resources: [{ ...orders, spec: { ...orders?.spec, storage_gb: 2 } }, ...others] };
    const pending = await printed("projects", "plan", "-f", fixture.fileOf(changed));
    expect(pending).toMatch(/orders\s+postgres\s+noop\s+\(recorded, not applied\)\n\s+storage_size_gb: 1 -> 2/);
    expect(await printed("projects", "list")).toMatch(/shop\s+Running\s+healthy\s+45\.6/);
    expect(await printed("projects", "status", "shop")).toMatch(/people\s+database\s+Running/);
    expect((await printed("projects", "deployments", "shop")).match(/Completed/g)).toHaveLength(2);
    await printed("projects", "drift", "shop");
  });

  it("isolate their resources, and store their descriptors outside of etcd", async () => {
    const [stack, pipeline, project] = [await stackNow(), await pipelineNow(), await fixture.project("shop")];
    const children = [
      { owner: { kind: "project", id: project.id }, id: await idOf("orders") },
      { owner: { kind: "stack", id: stack.id }, id: stack.resources[0]?.service_id },
      { owner: { kind: "pipeline", id: pipeline.id }, id: pipeline.members[0]?.service_id },
    ];
    for (const { owner, id } of children) {
      const path = `/managed-services/${id}`;
      expect((await rest.get(path)).json["managed_by"]).toEqual(owner);
      const responses = await Promise.all([
        rest.delete(path),
        rest.post(`${path}/stop`),
        rest.post(`${path}/resize`, { plan_name: "tier-2" }),
        rest.patch(path, { plan_name: "tier-2", storage_size_gb: 2 }),
        rest.patch(path, { name: "mine" }),
      ]);
      for (const { status, json } of responses)
        expect([status, json]).toMatchObject([409, { code: "managed_by_parent", managed_by: owner }]);
    }
    // A disk may grow, and its project records the new size and cost.
    const grown = `/managed-services/${children[0]?.id}`;
    expectStatus(await rest.post(`${grown}/storage/expand`, { storage_size_gb: 2 }), 202);
    await waitUntil(
      "the project has recorded the size",
      async () => (await fixture.project("shop")).monthly_cost > 45.6,
    );
    const [first, ...others] = shop.resources;
    const larger = { ...shop, resources: [{ ...first, spec: { ...first?.spec, storage_gb: 2 } }, ...others] };
    const { json: recorded } = await rest.post<ProjectPlan>("/projects/plan", { descriptor: larger });
    expect(recorded.plan[0]).toMatchObject({ action: "noop", pending_changes: [], drift: [], reason: null });
    expect(recorded).toMatchObject({ cost_delta: 0, monthly_cost: (await fixture.project("shop")).monthly_cost });
    expectStatus(await rest.patch(grown, { storage_size_gb: 3 }), 202);
    await waitUntil("the project has recorded the next size", async () => {
      const { json } = await rest.post<ProjectPlan>("/projects/plan", { descriptor: larger });
      return JSON.stringify(json.plan[0]?.pending_changes).includes('"before":3');
    });

    const { entries } = (
      await rest.get<{ entries: { action: string; detail: string | null }[] }>("/audit-log?limit=200")
    ).json;
    const creations = entries.filter(({ action }) => action === "managed-service.create").map(({ detail }) => detail);
    for (const { kind, id } of children.map(({ owner }) => owner))
      expect(creations.some((detail) => detail?.startsWith(kind) === true && detail.includes(id))).toBe(true);

    const many = Array.from({ length: 95 }, (_, index) => ({ ...third, logical_name: `m${index}` }));
    const over = await fixture.deploy({ name: "many", resources: many });
    expect([over.status, over.json.code]).toEqual([409, "quota_exceeded"]);
    expect((await rest.get("/projects/many")).status).toBe(404);

    // Deployments other than the newest of a project are in the history.
    const stored = () => dumpEtcd(fixture.platform.directory);
    const newest = await waitUntil("older deployments are in the history", async () => {
      const keys = [...(await stored()).keys()].filter((key) => key.includes("/deployment/"));
      return keys.length === 3 && keys;
    });
    expect(newest.some((key) => key.endsWith(project.last_deployment_id))).toBe(true);
    const page = async (query: string) =>
      (await rest.get<{ deployments: Deployment[]; next_cursor: string | null }>(`/projects/shop/deployments${query}`))
        .json;
    const newestPage = await page("?limit=1");
    expect(newestPage.deployments.map(({ id }) => id)).toEqual([project.last_deployment_id]);
    const second = await page(`?limit=1&cursor=${newestPage.next_cursor}`);
    expect(second).toMatchObject({ deployments: [{ status: "Completed" }], next_cursor: null });
    const all = JSON.stringify([...(await stored())].filter(([key]) => /\/(composition|deployment)\//.test(key)));
    expect(all).not.toContain("marked-descriptor");
  });

  it("leave running resources alone when a third one fails, and nothing of a first deployment", async () => {
    const before = await fixture.project("shop");
    const slow = { ...third, logical_name: "slow" };
    const needs = { ...shop.dependencies, third: ["slow"] };
    const wide = { ...shop, resources: [...shop.resources, slow, third], dependencies: needs };
    const { deployment_id: wideId } = expectStatus(await fixture.deploy(wide), 202).json;
    // The name was free when the deployment began.
    const holder = await services.create("shop-third", { database_type: "valkey" });
    const failed = await fixture.ended("shop", wideId);
    expect(failed).toMatchObject({ status: "Failed", error: expect.stringContaining("third") });
    const after = await fixture.project("shop");
    const withoutSlow = after.resources.filter(({ logical_name: name }) => name !== "slow");
    expect(withoutSlow).toEqual(before.resources);
    expect(after.status).toBe("Failed");
    // The previous template is Running again, without a change.
    const { deployment_id: redeployment } = expectStatus(await fixture.deploy(shop), 202).json;
    await fixture.ended("shop", redeployment);
    const slowId = await idOf("slow");
    await printed("projects", "release", "shop", "slow");
    expectStatus(await rest.delete(`/managed-services/${slowId}?skip_final_backup=true`), 202);

    // Names in use and other kinds are refused before anything is created.
    const collides = { ...shop, resources: [...shop.resources, third] };
    const blocked = await printed("projects", "plan", "-f", fixture.fileOf(collides));
    expect(blocked).toMatch(
      new RegExp(`third\\s+valkey\\s+create\\s+\\(blocked: name in use by service ${holder.id}\\)`),
    );
    const conflicting = await fixture.deploy(collides);
    expect([conflicting.status, conflicting.json]).toMatchObject([
      409,
      {
        code: "name_taken",
        blocked: [{ logical_name: "third", name: "shop-third", in_use_by: `service ${holder.id}` }],
      },
    ]);
    const stackOfName = { name: "shop", template_name: "one-cache", accepted_monthly_cost: 30.2 };
    const launched = await rest.post("/stacks", stackOfName);
    expect([launched.status, launched.json]).toMatchObject([
      409,
      { code: "name_taken", blocked: [{ name: "shop-cache" }] },
    ]);
    const converted = { ...shop, resources: shop.resources.map((each) => ({ ...each, kind: "postgres" })) };
    for (const path of ["/projects/plan", "/projects/deploy"]) {
      const { status, json } = await rest.post(path, { descriptor: converted });
      expect([status, json]).toMatchObject([
        400,
        { code: "invalid_descriptor", errors: [{ field: "resources[2].kind", code: "immutable" }] },
      ]);
    }
    expect(await fixture.project("shop")).toMatchObject({ status: "Running", last_deployment_id: redeployment });

    const brief = { name: "brief", resources: [{ logical_name: "db", kind: "valkey", spec: small }] };
    const four = await Promise.all(Array.from({ length: 4 }, () => fixture.deploy(brief)));
    expect(four.map(({ status, json }) => `${status} ${json.code ?? ""}`).toSorted()).toEqual([
      "202 ",
      ...Array.from({ length: 3 }, () => "409 project_busy"),
    ]);
    const id = four.find(({ status }) => status === 202)?.json.deployment_id ?? "";
    const created = await waitUntil("it is being created", async () => (await idOf("db", "brief")) || undefined);
    await printed("projects", "abort", "brief");
    expect(await fixture.ended("brief", id)).toMatchObject({ status: "Aborted", project_status: "Failed" });
    expect((await rest.get(`/managed-services/${created}`)).status).toBe(404);
    expect((await fixture.project("brief")).resources).toEqual([]);
    expect((await cli("projects", "abort", "brief", id)).code).toBe(5);
    expect(await fixture.ended("shop", redeployment)).toMatchObject({ status: "Completed", project_status: "Running" });
  }, 120_000);

  it("are upgraded in place at the accepted cost, and degrade and recover with their engines", async () => {
    const { members } = await pipelineNow();
    const node = (await services.get(members[0]?.service_id ?? "")).nodes[0]?.id;
    // Its engine is down for as long as it is killed repeatedly.
    const killing = setInterval(() => {
      const engine = fixture.platform.processes().machines.find(({ id }) => id === node)?.engine;
      if (engine !== undefined) killImmediately(engine);
    }, 200);
    try {
      const printedPlan = await printed("stacks", "upgrade", "cached");
      expect(printedPlan).toMatch(/cache\s+database\s+in_place\s+scale_service/);
      expect(printedPlan).toContain("15.20 -> 30.20 a month");
      expect((await cli("stacks", "upgrade", "cached", "--accept-cost", "15.2")).stderr).toContain("cost_drift");
      const upgraded = await printed("stacks", "upgrade", "cached", "--accept-cost", "30.2", "--wait");
      expect(upgraded).toMatch(/cache\s+scale_service\s+Completed/);
      const degraded = await waitUntil(
        "the pipeline is degraded",
        async () => {
          const now = await pipelineNow();
          return now.status === "degraded" && now;
        },
        { withinMs: 60_000 },
      );
      expect(degraded.status_detail).toContain("hot");
    } finally {
      clearInterval(killing);
    }
    const stack = await stackNow();
    expect(stack).toMatchObject({ status: "Running", template_version: "2.0.0", monthly_cost: 30.2 });
    const scaled = await rest.get(`/managed-services/${stack.resources[0]?.service_id}`);
    expect(scaled.json["plan_name"]).toBe("tier-2");
    expect(await printed("stacks", "migrations", "cached")).toMatch(/1\.0\.0\s+2\.0\.0\s+Completed/);
    const repeated = await rest.post(`/stacks/${stack.id}/upgrade`, { accepted_monthly_cost: 30.2 });
    expect([repeated.status, repeated.json["status"]]).toEqual([200, "up_to_date"]);
    await waitUntil("the pipeline runs again", async () => (await pipelineNow()).status === "running", {
      withinMs: 60_000,
    });
  }, 120_000);

  it("are the same over gRPC", async () => {
    const grpc = grpcAs(fixture.platform, fixture.platform.owner);
    try {
      const project = await grpc.of(ProjectService).getProject({ name: "shop" });
      expect([project.status, project.resources.length]).toEqual([ProjectStatus.RUNNING, 3]);
      const descriptor = new TextEncoder().encode(JSON.stringify(shop));
      const plan = await grpc.of(ProjectService).planProject({ descriptor });
      const rested = (await rest.post<ProjectPlan>("/projects/plan", { descriptor: shop })).json;
      expect([plan.planDigest, plan.monthlyCost]).toEqual([rested.plan_digest, rested.monthly_cost]);
      const { stacks } = await grpc.of(StackService).listStacks({});
      expect(stacks.map(({ name, status }) => [name, status])).toEqual([["cached", StackStatus.RUNNING]]);
      expect((await grpc.of(StackService).previewStack({ templateName: "one-cache" })).monthlyTotal).toBe(30.2);
      // The report of the engine's last restart may arrive after one of a running engine.
      const pipelines = await waitUntil("the pipeline runs", async () => {
        const listed = await grpc.of(PipelineService).listPipelines({});
        return listed.pipelines.every(({ status }) => status === PipelineStatus.RUNNING) && listed.pipelines;
      });
      expect(pipelines.map(({ name }) => name)).toEqual(["events"]);
      const detail = await grpc.of(PipelineService).getPipeline({ id: pipelines[0]?.id ?? "" });
      expect(detail.connections[0]?.connections?.connectionUri).toMatch(/^rediss:/);
    } finally {
      grpc.close();
    }
  });

  it("release what their descriptor omits, and are deleted with all the rest", async () => {
    const fewer = { ...shop, resources: shop.resources.filter(({ logical_name: name }) => name !== "cache") };
    const shrunk = await printed("projects", "apply", "-f", fixture.fileOf(fewer), "--yes");
    expect(shrunk).toMatch(/\? cache\s+database\s+unmanaged/);
    const cacheId = await idOf("cache");
    expect((await rest.get(`/managed-services/${cacheId}`)).json["managed_by"]).toBeNull();
    await printed("projects", "release", "shop", "cache");

    const orders = await idOf("orders");
    await rest.patch(`/managed-services/${orders}`, { deletion_protection: true, tags: { team: "other" } });
    expect(await printed("projects", "drift", "shop")).toMatch(/orders\s+tags\.team\s+shop\s+other/);
    const scopes = ["projects:write", "stacks:write", "pipelines:write"];
    const { token } = expectStatus(
      await rest.post<{ token: string }>("/tokens", { scopes, ttl_seconds: 60 }),
      201,
    ).json;
    const bundlesOnly = rest.as(`Bearer ${token}`);
    for (const path of ["/projects/shop", `/stacks/${(await stackNow()).id}`, `/pipelines/${(await pipelineNow()).id}`])
      expect((await bundlesOnly.delete(path)).json).toMatchObject({ code: "scope_missing", scope: "services:write" });
    const refused = await rest.delete("/projects/shop");
    expect([refused.status, refused.json]).toMatchObject([409, { code: "deletion_protected", resource: "orders" }]);
    await rest.patch(`/managed-services/${orders}`, { deletion_protection: false });
    const [stack, pipeline] = [await stackNow(), await pipelineNow()];
    // Two final backups at a time: others wait.
    await Promise.all([
      printed("projects", "delete", "shop", "--yes", "--wait"),
      printed("stacks", "delete", "cached", "--yes", "--wait"),
    ]);
    await printed("pipelines", "delete", "events", "--yes", "--wait");
    expect(await fixture.project("shop")).toMatchObject({ status: "Deleted", resources: [] });
    expect((await rest.get(`/stacks/${stack.id}`)).json["code"]).toBe("stack_not_found");
    expect((await rest.get(`/pipelines/${pipeline.id}`)).json["code"]).toBe("pipeline_not_found");
    const { services: remaining } = (await rest.get<{ services: { name: string }[] }>("/managed-services")).json;
    expect(remaining.map(({ name }) => name).toSorted()).toEqual(["shop-cache", "shop-third"]);
    const { events } = (await rest.get<{ events: { event_type: string }[] }>("/events?limit=200")).json;
    const types = new Set(events.map(({ event_type: type }) => type));
    for (const type of ["project.deployed", "project.failed", "project.deleted", "stack.running", "stack.upgraded"])
      expect(types).toContain(type);
    for (const type of ["pipeline.running", "pipeline.degraded"]) expect(types).toContain(type);
  }, 120_000);
});
