import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { environmentOf } from "@holdfast/controller/resource-kind/environment-of.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Deployment, Project, ProjectPlan } from "../../sdk/src/index.ts";
import { openDatabaseUrl, openValkeyUrl } from "../support/composition/open-url.ts";
import { outputsOf } from "../support/composition/outputs-of.ts";
import { createCommandLine } from "../support/platform/command-line.ts";
import { dumpEtcd } from "../support/platform/etcd-dump.ts";
import { killAtOnce } from "../support/platform/platform-processes.ts";
import { type Platform, startPlatform } from "../support/platform/platform.ts";
import { createServices, expectStatus, type Services } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";

const small = { plan: "tier-1", storage_gb: 1 };
const shop = {
  name: "shop",
  resources: [
    { logical_name: "orders", kind: "postgres", spec: small },
    { logical_name: "people", kind: "postgres", spec: small },
    { logical_name: "cache", kind: "valkey", spec: { ...small, tags: { marked: "marked-descriptor" } } },
  ],
  dependencies: { people: ["orders"] },
};
const third = { logical_name: "third", kind: "postgres", spec: small };

describe("a project", () => {
  let platform: Platform;
  let services: Services;
  let directory: string;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "holdfast-projects-"));
    platform = await startPlatform();
    services = createServices(platform);
  });
  afterAll(async () => {
    await platform?.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  const fileOf = (descriptor: object) => {
    const file = join(directory, "holdfast.yaml");
    writeFileSync(file, JSON.stringify(descriptor));
    return file;
  };
  const cli = (...args: string[]) => {
    const line = createCommandLine({ HOLDFAST_DATA: platform.directory });
    return line.runHere(args).finally(() => line.remove());
  };
  const project = async (name = "shop") =>
    expectStatus(await platform.rest.get<Project>(`/projects/${name}`), 200).json;
  const idOf = async (logicalName: string, name = "shop") =>
    (await project(name)).resources.find((each) => each.logical_name === logicalName)?.resource_id ?? "";
  const deploy = (descriptor: object) =>
    platform.rest.post<{ deployment_id: string; code?: string }>("/projects/deploy", { descriptor });
  const ended = (id: string, name = "shop") =>
    waitUntil(
      `deployment ${id} is over`,
      async () => {
        const answer = await platform.rest
          .get<Deployment>(`/projects/${name}/deployments/${id}`)
          .catch(() => undefined);
        return answer?.status === 200 && answer.json.finished_at !== null ? answer.json : undefined;
      },
      { withinMs: 120_000 },
    );

  it("is planned with its cost, and comes up in order though its controller is killed", async () => {
    const file = fileOf(shop);
    const planned = await cli("projects", "plan", "-f", file);
    expect(planned).toMatchObject({ code: 0 });
    expect(planned.stdout).toMatch(/\+ orders\s+postgres\s+create/);
    expect(planned.stdout).toMatch(/Cost a month: 0\.00 -> 45\.60 EUR/);
    expect((await platform.rest.get("/projects/shop")).json["code"]).toBe("project_not_found");

    const applied = cli("projects", "apply", "-f", file, "--yes");
    await waitUntil("a database is being made", async () => {
      const { json } = await platform.rest.get<Project>("/projects/shop");
      return json.resources?.some(({ status }) => status === "Provisioning");
    });
    const busy = await deploy(shop);
    expect([busy.status, busy.json.code]).toEqual([409, "project_busy"]);
    killAtOnce(platform.processes().controllers[0] ?? 0);
    expect(await applied).toMatchObject({ code: 0 });

    const made = await project();
    expect(made).toMatchObject({ status: "Running", health: "healthy", monthly_cost: 45.6 });
    expect(made.resources.map(({ status }) => status)).toEqual(["Running", "Running", "Running"]);
    const { services: all } = (
      await platform.rest.get<{ services: { name: string; created_at: string }[] }>("/managed-services")
    ).json;
    expect(all.map(({ name }) => name).toSorted()).toEqual(["shop-cache", "shop-orders", "shop-people"]);
    const madeAt = (name: string) => all.find((service) => service.name === name)?.created_at ?? "";
    expect(madeAt("shop-people") > madeAt("shop-orders")).toBe(true);
  }, 120_000);

  it("gives consumers all that they need in their environment", async () => {
    const of = async (name: string) => ({
      prefix: name.toUpperCase(),
      outputs: outputsOf(await services.open(await idOf(name))),
    });
    const consumer = { apiToken: "t", apiUrl: platform.admin.base_url, caFile: platform.admin.ca_file };
    const several = environmentOf(consumer, [await of("orders"), await of("people"), await of("cache")]);
    for (const name of ["ORDERS_DATABASE_URL", "PEOPLE_DATABASE_URL"]) {
      const client = await openDatabaseUrl(platform, several[name] ?? "");
      expect((await client.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
      await client.end();
    }
    const one = environmentOf(consumer, [await of("orders")]);
    const client = await openDatabaseUrl(platform, one["DATABASE_URL"] ?? "");
    await client.query("CREATE TABLE kept AS SELECT 17 AS n");
    await client.end();
    const cache = await openValkeyUrl(platform, several["CACHE_URL"] ?? "");
    expect(await cache.ping()).toBe("PONG");
    cache.disconnect();
  });

  it("reads noop when it is applied again, and touches nothing", async () => {
    const before = (await platform.rest.get<{ services: object[] }>("/managed-services")).text;
    const again = await cli("projects", "apply", "-f", fileOf(shop), "--yes");
    expect(again).toMatchObject({ code: 0 });
    expect(again.stdout).toContain("Nothing is changed.");
    const { last_deployment_id: id } = await project();
    const record = await ended(id);
    expect(record).toMatchObject({ status: "Completed", project_status: "Running" });
    expect(record.plan.map(({ action }) => action)).toEqual(["noop", "noop", "noop"]);
    expect((await platform.rest.get("/managed-services")).text).toBe(before);
    const check = await cli("projects", "plan", "-f", fileOf(shop), "--check");
    expect(check.code).toBe(0);
    expect(
      (await cli("projects", "plan", "-f", fileOf({ ...shop, resources: [...shop.resources, third] }), "--check")).code,
    ).toBe(1);
  });

  it("keeps its resources to itself, and its descriptor out of etcd", async () => {
    const path = `/managed-services/${await idOf("orders")}`;
    const { id } = await project();
    const refused = await platform.rest.delete(path);
    expect([refused.status, refused.json]).toMatchObject([
      409,
      { code: "managed_by_parent", managed_by: { kind: "project", id } },
    ]);
    expect((await platform.rest.post(`${path}/stop`)).status).toBe(409);
    expect((await platform.rest.patch(path, { name: "mine" })).status).toBe(409);
    expect((await platform.rest.get(path)).json["managed_by"]).toEqual({ kind: "project", id });
    const stored = [...(await dumpEtcd(platform.directory))].filter(([key]) => key.includes("/composition/"));
    expect(stored).toHaveLength(1);
    expect(JSON.stringify(stored)).not.toContain("marked-descriptor");
  });

  it("leaves what runs alone when a third resource cannot be had", async () => {
    const before = await project();
    await services.create("shop-third");
    const wide = { ...shop, resources: [...shop.resources, third] };
    const record = await ended(expectStatus(await deploy(wide), 202).json.deployment_id);
    expect(record).toMatchObject({ status: "Failed", project_status: "Failed" });
    expect(record.error).toContain("third");
    const after = await project();
    expect(after.resources).toEqual(before.resources);
    expect(after.status).toBe("Failed");
    // The same as before is Running again, without a change.
    const back = await ended(expectStatus(await deploy(shop), 202).json.deployment_id);
    expect(back).toMatchObject({ status: "Completed", project_status: "Running" });
  }, 60_000);

  it("leaves nothing of a first deployment that is aborted", async () => {
    const brief = { name: "brief", resources: [{ logical_name: "db", kind: "valkey", spec: small }] };
    const { deployment_id: id } = expectStatus(await deploy(brief), 202).json;
    await waitUntil("it is being made", async () => (await idOf("db", "brief")) !== "");
    const made = await idOf("db", "brief");
    expectStatus(await platform.rest.post(`/projects/brief/deployments/${id}/abort`), 202);
    expect(await ended(id, "brief")).toMatchObject({ status: "Aborted", project_status: "Failed" });
    expect((await platform.rest.get(`/managed-services/${made}`)).status).toBe(404);
    expect((await project("brief")).resources).toEqual([]);
    expect((await platform.rest.post(`/projects/brief/deployments/${id}/abort`)).status).toBe(409);
  }, 60_000);

  it("tells all faults of a descriptor at once, and kinds that are still to come", async () => {
    const bad = {
      name: "shop",
      resources: [
        { logical_name: "a", kind: "postgres", spec: { plan: "tier-99" } },
        { logical_name: "a", kind: "postgres", spec: {} },
        { logical_name: "b", kind: "valkey" },
      ],
      dependencies: { b: ["b", "c"] },
    };
    const refused = await platform.rest.post<{ code: string; errors: { field: string }[] }>("/projects/plan", {
      descriptor: bad,
    });
    expect([refused.status, refused.json.code]).toEqual([400, "invalid_descriptor"]);
    expect(refused.json.errors.map(({ field }) => field)).toEqual([
      "resources[1].logical_name",
      "dependencies.b[0]",
      "dependencies.b[1]",
      "resources[0].spec.plan_name",
    ]);
    const cycle = { ...shop, dependencies: { orders: ["people"], people: ["orders"] } };
    expect((await platform.rest.post("/projects/plan", { descriptor: cycle })).text).toContain(
      "orders -> people -> orders",
    );
    const app = { name: "shop", resources: [{ logical_name: "web", kind: "app", spec: { image: "x" } }] };
    expect((await platform.rest.post("/projects/plan", { descriptor: app })).json["code"]).toBe("kind_not_available");
    const drifted = await platform.rest.post("/projects/deploy", { descriptor: shop, plan_digest: "sha256:other" });
    expect([drifted.status, drifted.json["code"]]).toEqual([409, "plan_changed"]);
  });

  it("lets go of what its descriptor names no more, and is deleted with the rest", async () => {
    const fewer = { ...shop, resources: shop.resources.filter(({ logical_name: name }) => name !== "cache") };
    const plan = (await platform.rest.post<ProjectPlan>("/projects/plan", { descriptor: fewer })).json;
    expect(plan.plan.at(-1)).toMatchObject({ logical_name: "cache", action: "unmanaged" });
    await ended(expectStatus(await deploy(fewer), 202).json.deployment_id);
    const cacheId = await idOf("cache");
    expect((await platform.rest.get(`/managed-services/${cacheId}`)).json["managed_by"]).toBeNull();
    const released = await cli("projects", "release", "shop", "cache");
    expect(released).toMatchObject({ code: 0 });

    const orders = await idOf("orders");
    await platform.rest.patch(`/managed-services/${orders}`, { deletion_protection: true });
    const refused = await platform.rest.delete("/projects/shop");
    expect([refused.status, refused.json]).toMatchObject([409, { code: "deletion_protected", resource: "orders" }]);
    expect((await platform.rest.get<{ resources: object[] }>("/projects/shop/drift")).json.resources).toMatchObject([]);
    await platform.rest.patch(`/managed-services/${orders}`, { deletion_protection: false });
    expectStatus(await platform.rest.delete("/projects/shop"), 202);
    await waitUntil("the project is deleted", async () => (await project()).status === "Deleted", {
      withinMs: 120_000,
    });
    expect((await project()).resources).toEqual([]);
    expect((await platform.rest.get(`/managed-services/${orders}`)).status).toBe(404);
    expect((await platform.rest.get(`/managed-services/${cacheId}`)).status).toBe(200);
  }, 120_000);
});
