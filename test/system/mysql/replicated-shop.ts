import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ReplicationStatus } from "@holdfast/sdk/index.ts";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { withPrimary } from "@holdfast/testing/api/service-json.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type Connection, createConnection } from "mysql2/promise";

interface Login {
  readonly host?: string;
  readonly port?: number;
  /** Address in place of the host's, as of a client with an outdated one. */
  readonly at?: string;
  readonly user?: string;
  readonly password?: string;
  readonly isPlain?: boolean;
}

interface ShopOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** True, the default, if the client writes from the beginning. */
  readonly isWritten?: boolean;
  /** Nodes at the beginning, 2 by default. A single node has no mode yet. */
  readonly nodeCount?: 1 | 2;
}

/** An acknowledged number, with the times at which its write began and was acknowledged, in milliseconds. */
interface WrittenNumber {
  readonly n: number;
  readonly startedAt: number;
  readonly acknowledgedAt: number;
}

/** Pause of a client that no node serves: without it, it would take a processor from the nodes. */
const reconnectMs = 50;

/** First number of a writer at one node. */
const firstAtNode = 1_000_000_000;

/** A MySQL of two nodes in mode `sync`, with a client that writes numbers without a pause. */
export async function startReplicatedShop({ environment = {}, isWritten = true, nodeCount = 2 }: ShopOptions = {}) {
  const platform: Platform = await startPlatform({ environment });
  try {
    const services = createServices(platform);
    const replicated = nodeCount === 1 ? {} : { node_count: nodeCount, replication_mode: "sync" };
    const shop = await services.createRunning("shop", { database_type: "mysql", ...replicated });
    const written = await writtenShop(platform, services, shop);
    if (isWritten) written.startWriting();
    return written;
  } catch (error) {
    await platform.remove();
    throw error;
  }
}

export type ReplicatedShop = Awaited<ReturnType<typeof startReplicatedShop>>;

async function writtenShop(platform: Platform, services: Services, shop: RunningService) {
  const writing = new AbortController();
  /** Numbers that were acknowledged. */
  const numbers: number[] = [];
  const written: WrittenNumber[] = [];

  const path = (rest: string) => `/managed-services/${shop.service.id}${rest}`;
  const statusOf = async (nodeId: string) =>
    expectStatus(await platform.rest.get<ReplicationStatus>(path(`/nodes/${nodeId}/replication-status`)), 200).json;
  const rolesNow = async () => {
    const { nodes, primary_node_id: primary, term } = withPrimary(await services.get(shop.service.id));
    const replica = nodes.find(({ role }) => role === "replica");
    return { primary, replica: replica?.id ?? "", replicaHost: replica?.hostname ?? "", term };
  };
  const engineOf = (nodeId: string) => platform.processes().machines.find(({ id }) => id === nodeId)?.engine ?? 0;
  const follows = (nodeId: string) =>
    waitUntil("the node follows", async () => (await statusOf(nodeId)).sync_state === "streaming", {
      describe: async () => `${JSON.stringify(await statusOf(nodeId))}\n${await services.describe(shop.service.id)}`,
    });
  /** Writes through the service's name continue. */
  const writesContinue = async () => {
    const before = numbers.length;
    await waitUntil("writes continue", () => numbers.length > before + 5);
  };

  async function open({ user = "app_user", password = shop.password, ...login }: Login = {}): Promise<Connection> {
    const { ca_certificate: ca } = shop.connection;
    const { host = shop.connection.host, port = shop.connection.port, at, isPlain = false } = login;
    const stream = connect({ host: at ?? (await addressOf(platform, host)), port });
    const tls = isPlain ? {} : { ssl: { ca, verifyIdentity: true } };
    const client = await createConnection({ host, user, password, database: "defaultdb", stream, ...tls });
    client.on("error", () => undefined);
    return client;
  }

  async function query<Row extends object>(sql: string, login?: Login): Promise<Row[]> {
    const client = await open(login);
    try {
      return (await client.query(sql))[0] as Row[];
    } finally {
      client.destroy();
    }
  }

  /** Writes numbers one after another; a number without a response is never used again. */
  async function write(first: number, login: Login, acknowledge: (written: WrittenNumber) => void): Promise<void> {
    let next = first;
    // A destroyed client does not end a statement that no server responds to.
    const ended = new Promise<never>((_, reject) => {
      writing.signal.addEventListener("abort", () => reject(new Error("the client was ended")));
    });
    ended.catch(() => undefined);
    while (!writing.signal.aborted) {
      const client = await Promise.race([open(login), ended]).catch(() => undefined);
      try {
        while (client !== undefined && !writing.signal.aborted) {
          const n = next++;
          const startedAt = Date.now();
          await Promise.race([client.query(`INSERT INTO ledger VALUES (${n})`), ended]);
          acknowledge({ n, startedAt, acknowledgedAt: Date.now() });
        }
      } catch {
        // A primary that ends closes its sessions.
      } finally {
        client?.destroy();
      }
      // Time: the rate of reconnections.
      await sleep(reconnectMs, undefined, { signal: writing.signal }).catch(() => undefined);
    }
  }

  await query("CREATE TABLE ledger (n INT PRIMARY KEY)");
  const writers: Promise<void>[] = [];
  /** Numbers that one node acknowledged. */
  const numbersAt: number[] = [];

  return {
    platform,
    services,
    shop,
    numbers,
    written,
    path,
    statusOf,
    rolesNow,
    engineOf,
    follows,
    writesContinue,
    open,
    query,
    startWriting(): void {
      const writer = write(1, {}, (each) => {
        numbers.push(each.n);
        written.push(each);
      });
      writers.push(writer);
    },
    /** Also writes to the node at this address, in any role. Returns the numbers that it acknowledges. */
    writeAt(at: string): readonly number[] {
      writers.push(write(firstAtNode, { at }, ({ n }) => void numbersAt.push(n)));
      return numbersAt;
    },
    async stopWriting(): Promise<void> {
      writing.abort();
      await Promise.all(writers);
    },
    /** Ends the client. Resolves with the acknowledged numbers that are lost. */
    async lost(): Promise<number[]> {
      await this.stopWriting();
      const rows = await query<{ n: number }>("SELECT n FROM ledger");
      const found = new Set(rows.map(({ n }) => n));
      return [...numbers, ...numbersAt].filter((n) => !found.has(n));
    },
    async remove(): Promise<void> {
      writing.abort();
      await platform.remove();
    },
  };
}
