import { setTimeout as sleep } from "node:timers/promises";
import type { Redis as Valkey } from "iovalkey";
import { flushedAtOnce } from "../../faults/acknowledged-writer.ts";
import { openValkey } from "../../support/api/clients.ts";
import type { Platform } from "../../support/platform/platform.ts";
import { createServices, type RunningService } from "../../support/platform/services.ts";
import { createGround, openGround, type ServiceGround } from "./walk-ground.ts";
import { faultsOf, type LedgerRow, type Moment, type WalkLedger } from "./walk-ledger.ts";

/** One Valkey that is written to all the time. Its rows are keys. */
export interface ValkeyGround extends ServiceGround {
  /** When rows expire, by their number: milliseconds since 1970. */
  readonly expiries: Map<number, number>;
  /** Work in a session of its own. What it wrote is acknowledged when it resolves, by the replica as well, where there is to be one. */
  within<T>(work: (client: Valkey) => Promise<T>): Promise<T>;
}

export const keyPrefix = "row:";
export const valuePrefix = "value ";
export const keyOf = (row: number) => `${keyPrefix}${row}`;
export const valueOf = (row: number) => `${valuePrefix}${row}`;

/** A clock that is looked at a moment later. */
const expiresWithinMs = 1_000;
const waitMs = 5_000;

export const openValkeyGround = (): Promise<ValkeyGround> => openGround(groundOn);

async function groundOn(platform: Platform): Promise<ValkeyGround> {
  const services = createServices(platform);
  const source = await services.createRunning("walker", {
    database_type: "valkey",
    allowed_cidrs: ["127.0.0.0/8"],
    parameters: flushedAtOnce,
  });
  let replicas = 0;
  const expiries = new Map<number, number>();
  const connect = () => openValkey(platform, source.connection, { password: source.password });
  /** A failover keeps what a replica has; where none is to be, the engine's own file does. */
  const replicated = async (client: Valkey) => {
    if ((await client.wait(replicas, waitMs)) < replicas) throw new Error("no replica has it: the session ended");
  };
  const ground: ServiceGround = createGround<Valkey>({
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
    faultsIn: (of, service, moment) => faultsInValkey(of, service, moment, { ledger: ground.ledger, expiries }),
  });
  return {
    ...ground,
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
  // A copy removes in the background what expired while it was made.
  await sleep(expiresWithinMs);
  const { rows, damaged, begunAt, endedAt } = await readRows(platform, service);
  const expiryOf = ({ id }: LedgerRow) => expiries.get(id) ?? Number.POSITIVE_INFINITY;
  // What expires while it is read may be seen or not.
  const there = ledger.rows.filter((row) => expiryOf(row) > endedAt);
  const ended = ledger.rows.filter((row) => expiryOf(row) <= endedAt);
  const expired = ended.filter((row) => expiryOf(row) < begunAt && rows.has(row.id));
  const left = rows.difference(new Set(ended.map(({ id }) => id)));
  // Users are none of the data: the platform gives each copy its own.
  const none = { roles: new Set<string>(), prepared: new Set<string>(), databases: new Map() };
  return [
    ...faultsOf({ ...ledger, rows: there }, moment, { rows: left, damaged, ...none }),
    ...expired.map(({ id }) => `row ${id} is there, and expired at ${expiries.get(id)}`),
  ];
}

async function readRows(platform: Platform, { connection, password }: RunningService) {
  const client = await openValkey(platform, connection, { password });
  const begunAt = Date.now();
  const rows = new Set<number>();
  const damaged: number[] = [];
  try {
    for (let cursor = "0"; ; ) {
      const [next, keys] = await client.scan(cursor, "MATCH", `${keyPrefix}*`, "COUNT", 1_000);
      const values = keys.length === 0 ? [] : await client.mget(keys);
      for (const [index, key] of keys.entries()) {
        const id = Number(key.slice(keyPrefix.length));
        // A key that expired between the two commands is gone.
        if (values[index] == null) continue;
        rows.add(id);
        if (values[index] !== valueOf(id)) damaged.push(id);
      }
      if (next === "0") return { rows, damaged, begunAt, endedAt: Date.now() };
      cursor = next;
    }
  } finally {
    client.disconnect();
  }
}
