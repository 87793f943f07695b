import type { ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Client } from "@opensearch-project/opensearch";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type AcknowledgedWriter, startWriter } from "../faults/acknowledged-writer.ts";
import { openSearch } from "./opensearch/opensearch-service.ts";

interface IndexJson {
  readonly name: string;
  readonly health: string;
  readonly replicas: number;
}

interface BackupJson {
  readonly id: string;
  readonly status: string;
}

const skip = await requireRecipes(import.meta.filename, "opensearch");
const longMs = 1_800_000;
const index = "ledger";
const maxDocuments = 1_000_000;

describe.skipIf(skip !== undefined)("an OpenSearch of several members", { timeout: longMs }, () => {
  const writing = new AbortController();
  let platform: Platform;
  let services: Services;
  let logs: RunningService;
  let writer: AcknowledgedWriter;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const { id } = await services.create("logs", { database_type: "opensearch" });
    await services.settled(id, "Running", longMs);
    logs = await services.open(id);
    writer = await writeDocuments();
  }, longMs);
  afterAll(async () => {
    writing.abort();
    await writer?.done;
    await platform?.remove();
  }, longMs);

  const path = (rest = "") => `/managed-services/${logs.service.id}${rest}`;
  const describeService = () => services.describe(logs.service.id);
  const engineOf = (nodeId: string) => platform.processes().machines.find(({ id }) => id === nodeId)?.engine ?? 0;
  const leaderIn = ({ nodes }: ServiceJson) => nodes.find(({ role }) => role === "primary")?.id ?? "";
  const idsIn = async (client: Client) => {
    await client.indices.refresh({ index });
    const { hits } = (await client.search({ index, size: maxDocuments, _source: false })).body;
    return hits.hits.map(({ _id: id }) => Number(id));
  };

  async function writeDocuments(): Promise<AcknowledgedWriter> {
    const first = openSearch(platform, logs);
    await first.indices.create({ index, body: { settings: { number_of_shards: 3, max_result_window: maxDocuments } } });
    await first.close();
    return startWriter<Client>({
      connect: async () => openSearch(platform, logs),
      write: async (client, id) => void (await client.index({ index, id: String(id), timeout: "5s", body: { id } })),
      close: (client) => client.close(),
      read: idsIn,
      signal: writing.signal,
    });
  }

  async function writesContinue(): Promise<void> {
    const before = writer.acknowledged;
    await waitUntil("writes continue", () => writer.acknowledged > before + 20, {
      withinMs: longMs,
      describe: describeService,
    });
  }

  async function isComplete(count: number): Promise<ServiceJson> {
    const isIt = async () => {
      const service = await services.settled(logs.service.id, "Running", longMs);
      const running = service.nodes.filter(({ status }) => status === "Running").length;
      return running === count && service.nodes.length === count && service.health.status === "healthy" && service;
    };
    const service = await waitUntil("all members are healthy", isIt, { withinMs: longMs, describe: describeService });
    await waitUntil("the name resolves to all members", async () => {
      const addresses = await resolveName(platform.admin.dns_server, logs.connection.host);
      return addresses.length === count;
    });
    await writesContinue();
    return service;
  }

  async function ledgerIn(): Promise<IndexJson | undefined> {
    const { json } = expectStatus(await platform.rest.get<{ indices: IndexJson[] }>(path("/indices")), 200);
    return json.indices.find(({ name }) => name === index);
  }

  it("grows from one member to three, and its indices get a replica", async () => {
    expect(await ledgerIn()).toMatchObject({ replicas: 0 });
    expectStatus(await platform.rest.post(path("/nodes"), { role: "replica", count: 2 }), 202);
    await isComplete(3);
    const hasReplicas = async () => {
      const found = await ledgerIn();
      return found?.replicas === 1 && found.health === "green";
    };
    await waitUntil("the index has a replica", hasReplicas, { withinMs: longMs, describe: describeService });
    await isComplete(3);
  });

  it("takes writes while its leader is killed", async () => {
    killImmediately(engineOf(leaderIn(await services.get(logs.service.id))));
    await writesContinue();
    await isComplete(3);
  });

  it("takes writes while its members restart one by one", async () => {
    const before = platform.processes().machines.map(({ engine }) => engine);
    expectStatus(await platform.rest.post(path("/restart")), 202);
    await isComplete(3);
    const after = platform.processes().machines.map(({ engine }) => engine);
    expect(after.filter((pid) => before.includes(pid))).toEqual([]);
  });

  it("has backups with the documents of all members, which are restored into three", async () => {
    const written = [...writer.rows];
    const { id } = expectStatus(await platform.rest.post<BackupJson>(path("/backups")), 202).json;
    const ended = async () => {
      const found = expectStatus(await platform.rest.get<BackupJson>(path(`/backups/${id}`)), 200).json;
      return ["completed", "failed"].includes(found.status) ? found : undefined;
    };
    const backup = await waitUntil("the backup has ended", ended, { withinMs: longMs, describe: describeService });
    expect(backup.status).toBe("completed");
    const request = { target_service_name: "before", node_count: 3 };
    const restore = await platform.rest.post<ServiceJson>(path(`/backups/${id}/restore`), request);
    const copyId = expectStatus(restore, 202).json.id;
    await services.settled(copyId, "Running", longMs);
    const copy = await services.open(copyId);
    expect(copy.service.nodes).toHaveLength(3);
    const client = openSearch(platform, copy);
    const found = new Set(await idsIn(client));
    expect(written.filter((row) => !found.has(row.id))).toEqual([]);
    await client.close();
    await services.delete(copyId);
  });

  it("gets a fourth member, and loses its leader after its shards moved", async () => {
    expectStatus(await platform.rest.post(path("/nodes"), { role: "replica" }), 202);
    const leader = leaderIn(await isComplete(4));
    expectStatus(await platform.rest.delete(path(`/nodes/${leader}`)), 202);
    const three = await isComplete(3);
    expect(three.nodes.map(({ id }) => id)).not.toContain(leader);
    const two = await platform.rest.delete<ProblemJson>(path(`/nodes/${three.nodes[0]?.id}`));
    expect(expectStatus(two, 422).json.detail).toContain("1, 3, 4, 5 nodes");
  });

  it("has lost no acknowledged document", async () => {
    writing.abort();
    await writer.done;
    expect(await writer.missing()).toEqual([]);
    expect(writer.acknowledged).toBeGreaterThan(100);
    await services.delete(logs.service.id);
  });
});
