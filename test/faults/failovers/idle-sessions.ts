import type { Client } from "pg";
import { openPostgresql, openValkey } from "@holdfast/testing/api/clients.ts";
import type { FailoverFixture } from "./failover-fixture.ts";

/** Idle sessions, one of which has a transaction that never ends. */
export interface IdleSessions {
  /** Number of sessions that the server has not closed. */
  readonly open: number;
  close(): void;
}

const atOnce = 10;

/** Opens `count` sessions; throws unless the server admits all of them. */
export async function openIdleSessions(fixture: FailoverFixture, count: number): Promise<IdleSessions> {
  const { platform, main, kind } = fixture;
  const ending: (() => void)[] = [];
  let open = 0;

  async function openOne(): Promise<void> {
    if (kind === "valkey") {
      const client = await openValkey(platform, main.connection, main);
      client.once("end", () => (open -= 1));
      ending.push(() => client.disconnect());
    } else {
      const client = await openPostgresql(platform, main.connection, main);
      client.once("end", () => (open -= 1));
      ending.push(() => void client.end().catch(() => undefined));
      if (open === 0) await beginLong(client);
    }
    open += 1;
  }

  await openOne();
  // One by one they would take minutes on a busy machine.
  const opening = Array.from({ length: atOnce }, async () => {
    while (open < count) await openOne();
  });
  await Promise.all(opening);
  return {
    get open() {
      return open;
    },
    close() {
      for (const end of ending) end();
    },
  };
}

/** Begins a transaction with a lock and uncommitted rows. */
async function beginLong(client: Client): Promise<void> {
  await client.query("BEGIN; CREATE TEMPORARY TABLE held (id int); LOCK TABLE sides IN ROW SHARE MODE");
  await client.query("INSERT INTO ledger VALUES (-1)");
}
