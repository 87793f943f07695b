import type { Client } from "pg";
import type { ReplicationStatus, ServiceNode } from "@holdfast/sdk/index.ts";
import { type AcknowledgedWriter, writeRows } from "../../faults/acknowledged-writer.ts";
import { openPostgresql, queryOnce } from "@holdfast/testing/api/clients.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";

/** One PostgreSQL with a continuous writer, and frequent queries of its state. */
export interface ReplicationUnderTest {
  readonly platform: Platform;
  readonly services: Services;
  readonly main: RunningService;
  readonly writer: AcknowledgedWriter;
  stopWriting(): Promise<void>;
  /** Path of the service, or below it. */
  path(rest?: string): string;
  /** Adds a replica and waits until it runs. */
  addReplica(): Promise<ServiceNode>;
  statusOf(nodeId: string): Promise<ReplicationStatus>;
  /** Opens a session with one node, by its own name. */
  connectNode(nodeId: string): Promise<Client>;
  /** Runs a statement on one node, by its own name. */
  queryNode(nodeId: string, sql: string): Promise<Record<string, unknown>[]>;
  start(environment?: Readonly<Record<string, string>>): Promise<void>;
  remove(): Promise<void>;
}

type Started = Pick<ReplicationUnderTest, "platform" | "services" | "main" | "writer">;

export function createReplicationUnderTest(): ReplicationUnderTest {
  let running: Started | undefined;
  let platform: Platform | undefined;
  const writing = new AbortController();
  const started = () => {
    if (running === undefined) throw new Error("the PostgreSQL was not started");
    return running;
  };
  async function connectionOf(nodeId: string) {
    const { nodes } = await fixture.services.get(fixture.main.service.id);
    return { ...fixture.main.connection, host: nodes.find(({ id }) => id === nodeId)?.hostname ?? "" };
  }
  const fixture: ReplicationUnderTest = {
    get platform() {
      return started().platform;
    },
    get services() {
      return started().services;
    },
    get main() {
      return started().main;
    },
    get writer() {
      return started().writer;
    },
    async stopWriting() {
      writing.abort();
      await fixture.writer.done;
    },
    path: (rest = "") => `/managed-services/${fixture.main.service.id}${rest}`,
    async addReplica() {
      const added = await fixture.platform.rest.post<ServiceNode>(fixture.path("/nodes"), { role: "replica" });
      const { id } = expectStatus(added, 202).json;
      await fixture.services.settled(fixture.main.service.id, "Running");
      return expectStatus(await fixture.platform.rest.get<ServiceNode>(fixture.path(`/nodes/${id}`)), 200).json;
    },
    async statusOf(nodeId) {
      const path = fixture.path(`/nodes/${nodeId}/replication-status`);
      return expectStatus(await fixture.platform.rest.get<ReplicationStatus>(path), 200).json;
    },
    async connectNode(nodeId) {
      return openPostgresql(fixture.platform, await connectionOf(nodeId), { password: fixture.main.password });
    },
    async queryNode(nodeId, sql) {
      return queryOnce(fixture.platform, await connectionOf(nodeId), { password: fixture.main.password }, sql);
    },
    async start(environment = {}) {
      platform = await startPlatform({ environment: { HOLDFAST_SAMPLE_INTERVAL_MS: "1000", ...environment } });
      const services = createServices(platform);
      const main = await services.createRunning("main");
      running = { platform, services, main, writer: await writeRows(platform, main, writing.signal) };
    },
    async remove() {
      writing.abort();
      await platform?.remove();
    },
  };
  return fixture;
}
