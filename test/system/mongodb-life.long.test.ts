import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { documentsOnce } from "./mongodb/mongodb-service.ts";

const skip = await requireRecipes(import.meta.filename, "mongodb");

interface MetricsJson {
  readonly series: readonly { readonly metric: string; readonly points: readonly unknown[] }[];
  readonly absent: readonly { readonly metric: string; readonly reason: string }[];
}

describe.skipIf(skip !== undefined)("a service of MongoDB's API through changes and kills", () => {
  let platform: Platform;
  let services: Services;
  let docs: RunningService;
  let written = 0;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    docs = await services.createRunning("docs", { database_type: "mongodb" });
  });
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${docs.service.id}${rest}`;
  const processes = () => platform.processes().machines.find(({ id }) => id === docs.service.nodes[0]?.id);

  /** Writes one document, and counts all that were acknowledged. */
  async function expectComplete(): Promise<void> {
    await documentsOnce(platform, docs, async (database) => {
      const items = database.collection<{ _id: number }>("items");
      await items.insertOne({ _id: written });
      written += 1;
      expect(await items.countDocuments()).toBe(written);
    });
  }

  it("retains its documents over a stop and a start, and over a restart", async () => {
    await expectComplete();
    await services.verb(docs.service.id, "stop");
    await services.verb(docs.service.id, "start");
    await expectComplete();
    await services.verb(docs.service.id, "restart");
    await expectComplete();
  });

  it("is ready again when PostgreSQL is killed during a restart", async () => {
    const engine = processes()?.engine ?? 0;
    expectStatus(await platform.rest.post(path("/restart")), 202);
    killImmediately(engine);
    const isCompleted = async () =>
      (await services.operations(docs.service.id)).every(({ status }) => status === "completed");
    await waitUntil("the operation is completed", isCompleted, { withinMs: 60_000 });
    await expectComplete();
  });

  it("serves while its agent and the controllers are killed", async () => {
    const engine = processes()?.engine;
    killImmediately(processes()?.agent ?? 0);
    for (const pid of platform.processes().controllers) killImmediately(pid);
    await expectComplete();
    const isManaged = async () => (await platform.rest.get(path("/databases"))).status === 200;
    await waitUntil("a new agent is connected", isManaged, { withinMs: 120_000 });
    expect(processes()?.engine).toBe(engine);
    await expectComplete();
  });

  it("retains its documents over more storage and another plan, whose memory it uses", async () => {
    expectStatus(await platform.rest.post(path("/storage/expand"), { storage_size_gb: 2 }), 202);
    await services.settled(docs.service.id, "Running");
    await expectComplete();
    expectStatus(await platform.rest.post(path("/resize"), { plan_name: "tier-2" }), 202);
    await services.settled(docs.service.id, "Running");
    await expectComplete();
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters: { work_mem: "9MB" } }), 200);
    const unknown = await platform.rest.patch<ProblemJson>(path("/configuration"), { parameters: { wal_level: "x" } });
    expect(unknown.status).toBe(400);
    await expectComplete();
  });

  it("has the figures of its front end, and names those that do not exist", async () => {
    const measured = ["mongodb_ops_per_second", "mongodb_connections"];
    const missing = ["mongodb_replication_lag_seconds", "mongodb_wiredtiger_cache_used"];
    const query = [...measured, ...missing].map((name) => `metric=${name}`).join("&");
    const isComplete = ({ series, absent }: MetricsJson) =>
      series.filter(({ points }) => points.length > 0).length === measured.length && absent.length === missing.length;
    const found = await waitUntil("samples of all metrics", async () => {
      const { json } = await platform.rest.get<MetricsJson>(path(`/metrics?${query}&period=15m`));
      return isComplete(json) && json;
    });
    expect(found.absent.map(({ metric }) => metric).toSorted()).toEqual(missing);
    expect(found.absent.map(({ reason }) => reason).join()).toContain("no cache of WiredTiger");
  });

  it("refuses what it does not have, with the name of the field or the engine", async () => {
    const responses = [
      await platform.rest.patch<ProblemJson>(path(), { pooler: { enabled: true } }),
      await platform.rest.get<ProblemJson>(path("/metrics/query-stats")),
      await platform.rest.get<ProblemJson>(path("/queries/running")),
      await platform.rest.post<ProblemJson>(path("/ai-query/execute"), { sql: "SELECT 1" }),
      await platform.rest.post<ProblemJson>(path("/queues"), { name: "jobs" }),
    ];
    expect(responses.map(({ status }) => status)).toEqual([400, 422, 422, 400, 422]);
    for (const { text } of responses) expect(text).toMatch(/mongodb/i);
    const body = {
      name: "own-server",
      database_type: "mongodb",
      version: "8.0",
      plan_name: "tier-1",
      storage_size_gb: 1,
    };
    const ofVersion = await platform.rest.post<ProblemJson>("/managed-services", body);
    expect(ofVersion.status).toBe(400);
    expect(ofVersion.text).toContain("of which this release only builds an image");
  });

  it("is deleted with its machine", async () => {
    await services.delete(docs.service.id);
    await waitUntil("its processes have ended", () => processes() === undefined);
  });
});
