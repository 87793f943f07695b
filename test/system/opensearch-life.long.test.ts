import { runPythonOpensearch } from "@holdfast/testing/engines/opensearch-programs.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Client } from "@opensearch-project/opensearch";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openSearch } from "./opensearch/opensearch-service.ts";

const skip = await requireRecipes(import.meta.filename, "opensearch");
const longMs = 900_000;

describe.skipIf(skip !== undefined)("an OpenSearch through changes and kills", { timeout: longMs }, () => {
  let platform: Platform;
  let services: Services;
  let logs: RunningService;
  let client: Client;
  let written = 0;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const { id } = await services.create("logs", { database_type: "opensearch" });
    await services.settled(id, "Running", longMs);
    logs = await services.open(id);
    client = openSearch(platform, logs);
  }, longMs);
  afterAll(async () => {
    await client?.close();
    await platform?.remove();
  }, longMs);

  const path = (rest = "") => `/managed-services/${logs.service.id}${rest}`;
  const processes = () => platform.processes().machines.find(({ id }) => id === logs.service.nodes[0]?.id);

  /** Writes one document, and counts all that were acknowledged. */
  async function expectComplete(): Promise<void> {
    const write = () => client.index({ index: "items", id: String(written), refresh: true, body: { written } });
    await waitUntil(
      "clients write",
      () =>
        write().then(
          () => true,
          () => false,
        ),
      { withinMs: longMs },
    );
    written += 1;
    expect((await client.count({ index: "items" })).body.count).toBe(written);
  }

  it.skipIf(!asRoot)("serves opensearch-py by the service's name", async () => {
    expect(await runPythonOpensearch(platform, logs)).toEqual({
      bulk: 300,
      scanned: 300,
      tagged: 100,
      heavy: ["299", "298", "297"],
      even: 150,
      piped: [300, 9],
      delete_all: 403,
      settings: 403,
      delete: null,
    });
  });

  it("serves while its agent and the controllers are killed", async () => {
    await expectComplete();
    const engine = processes()?.engine;
    killImmediately(processes()?.agent ?? 0);
    for (const pid of platform.processes().controllers) killImmediately(pid);
    await expectComplete();
    const isManaged = async () => (await platform.rest.get(path("/indices"))).status === 200;
    await waitUntil("a new agent is connected", isManaged, { withinMs: longMs });
    expect(processes()?.engine).toBe(engine);
    await expectComplete();
  });

  it("serves again after the engine was killed, with all acknowledged documents", async () => {
    const engine = processes()?.engine ?? 0;
    killImmediately(engine);
    await waitUntil("the engine has ended", () => processes()?.engine !== engine, { withinMs: longMs });
    await expectComplete();
  });

  it("is ready again when the engine is killed during a restart", async () => {
    const engine = processes()?.engine ?? 0;
    expectStatus(await platform.rest.post(path("/restart")), 202);
    killImmediately(engine);
    const isCompleted = async () =>
      (await services.operations(logs.service.id)).every(({ status }) => status === "completed");
    await waitUntil("the operation is completed", isCompleted, { withinMs: longMs });
    await expectComplete();
  });

  it("retains its documents over a stop and a start, more storage and another plan, whose memory it uses", async () => {
    const heap = async () => {
      const { nodes } = (await client.nodes.info()).body;
      return Object.values(nodes)[0]?.jvm?.mem.heap_max_in_bytes;
    };
    await services.verb(logs.service.id, "stop", longMs);
    await services.verb(logs.service.id, "start", longMs);
    await expectComplete();
    const before = Number(await heap());
    expectStatus(await platform.rest.post(path("/storage/expand"), { storage_size_gb: 2 }), 202);
    await services.settled(logs.service.id, "Running", longMs);
    expectStatus(await platform.rest.post(path("/resize"), { plan_name: "tier-2" }), 202);
    await services.settled(logs.service.id, "Running", longMs);
    await expectComplete();
    expect(Number(await heap())).toBeGreaterThan(before);
  });

  it("applies a parameter to the running engine, another at a restart, and refuses those that it does not have", async () => {
    const change = (parameters: object) => platform.rest.patch(path("/configuration"), { parameters });
    expectStatus(await change({ "search.max_buckets": "20000" }), 200);
    const settings = async () =>
      (await client.cluster.getSettings({ flat_settings: true })).body.persistent["search.max_buckets"];
    await waitUntil("the engine has the value", async () => String(await settings()) === "20000", { withinMs: longMs });
    for (const refused of [{ "network.host": "0.0.0.0" }, { "search.max_buckets": "-1" }])
      expectStatus(await change(refused), 400);
    await expectComplete();
  });

  it("is deleted with its machine", async () => {
    await services.delete(logs.service.id);
    await waitUntil("its processes have ended", () => processes() === undefined, { withinMs: longMs });
  });
});
