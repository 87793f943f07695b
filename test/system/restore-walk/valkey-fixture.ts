import { setTimeout as sleep } from "node:timers/promises";
import type { Redis as Valkey } from "iovalkey";
import { flushOnWrite } from "../../faults/acknowledged-writer.ts";
import { openValkey } from "@holdfast/testing/api/clients.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type RunningService } from "@holdfast/testing/platform/services.ts";
import { createFixture, openFixture, type ServiceFixture } from "./walk-fixture.ts";
import { faultsOf, type LedgerRow, type Moment, type WalkLedger } from "./walk-ledger.ts";

/** One Valkey with a continuous writer. Its rows are keys. */
export interface ValkeyFixture extends ServiceFixture {
  /** Expiry of rows by number, in milliseconds since 1970. */
  readonly expiries: Map<number, number>;
  /**
   * Runs `work` in a new session. Resolves when its writes are acknowledged, also by the replica where one is required.
   */
  within<T>(work: (client: Valkey) => Promise<T>): Promise<T>;
}

export const keyPrefix = "row:";
export const valuePrefix = "value ";
export const keyOf = (row: number) => `${keyPrefix}${row}`;
export const valueOf = (row: number) => `${valuePrefix}${row}`;

/** Tolerance for the time between the engine's and the test's reading of the clock. */
const expiresWithinMs = 1_000;
const waitMs = 5_000;

export const openValkeyFixture = (): Promise<ValkeyFixture> => openFixture(fixtureOn);

async function fixtureOn(platform: Platform): Promise<ValkeyFixture> {
  const services = createServices(platform);
  const source = await services.createRunning("walker", {
    database_type: "valkey",
    allowed_cidrs: ["127.0.0.0/8"],
    parameters: flushOnWrite,
  });
  let replicas = 0;
  const expiries = new Map<number, number>();
  const connect = () => openValkey(platform, source.connection, { password: source.password });
  /** A failover retains what a replica has; without a replica the engine's own file does. */
  const replicated = async (client: Valkey) => {
    if ((await client.wait(replicas, waitMs)) < replicas) throw new Error("no replica has it: the session ended");
  };
  const fixture: ServiceFixture = createFixture<Valkey>({
    platform,
    services,
    source,
    connect,
    async write(client, row) {
      await client.set(keyOf(row), valueOf(row));
      await replicated(client);
    },
    close: async (client) => client.disconnect(),
    async protect({ failures }) {
      replicas = 1;
      await failures.untilReplicaCounts();
    },
    async unprotect() {
      replicas = 0;
    },
    faultsIn: (of, service, moment) => faultsInValkey(of, service, moment, { ledger: fixture.ledger, expiries }),
  });
  return {
    ...fixture,
    expiries,
    async within(work) {
      const client = await connect();
      try {
        const result = await work(client);
        await replicated(client);
        return result;
      } finally {
        client.disconnect();
      }
    },
  };
}

async function faultsInValkey(
  platform: Platform,
  service: RunningService,
  moment: Moment,
  { ledger, expiries }: { readonly ledger: WalkLedger; readonly expiries: ReadonlyMap<number, number> },
): Promise<readonly string[]> {
  // Time: the end of the lifetimes of keys, those that ended while the copy was created too.
  await sleep(expiresWithinMs);
  const { rows, damaged, startedAt, endedAt } = await readRows(platform, service);
  const expiryOf = ({ id }: LedgerRow) => expiries.get(id) ?? Number.POSITIVE_INFINITY;
  // A key that expires during the read may be seen or not.
  const unexpired = ledger.rows.filter((row) => expiryOf(row) > endedAt);
  const ended = ledger.rows.filter((row) => expiryOf(row) <= endedAt);
  const expired = ended.filter((row) => expiryOf(row) < startedAt && rows.has(row.id));
  const remaining = rows.difference(new Set(ended.map(({ id }) => id)));
  // Users are not part of the data: the platform gives each copy its own.
  const none = { roles: new Set<string>(), prepared: new Set<string>(), databases: new Map() };
  return [
    ...faultsOf({ ...ledger, rows: unexpired }, moment, { rows: remaining, damaged, ...none }),
    ...expired.map(({ id }) => `row ${id} is there, and expired at ${expiries.get(id)}`),
  ];
}

async function readRows(platform: Platform, { connection, password }: RunningService) {
  const client = await openValkey(platform, connection, { password });
  const startedAt = Date.now();
  const rows = new Set<number>();
  const damaged: number[] = [];
  try {
    for (let cursor = "0"; ; ) {
      const [next, keys] = await client.scan(cursor, "MATCH", `${keyPrefix}*`, "COUNT", 1_000);
      const values = keys.length === 0 ? [] : await client.mget(keys);
      for (const [index, key] of keys.entries()) {
        const id = Number(key.slice(keyPrefix.length));
        // A key that expired between the two commands is absent.
        if (values[index] == null) continue;
        rows.add(id);
        if (values[index] !== valueOf(id)) damaged.push(id);
      }
      if (next === "0") return { rows, damaged, startedAt, endedAt: Date.now() };
      cursor = next;
    }
  } finally {
    client.disconnect();
  }
}
