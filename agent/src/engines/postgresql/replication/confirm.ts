import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../../engine-driver.ts";
import { platform } from "../layout.ts";
import { withSession } from "../session.ts";
import { memberName, replicaRole } from "./members.ts";

const statementMs = 2_000;
const lookEveryMs = 50;

/**
 * Writes a record and waits until each of these members has received it: none of them was anything but this primary's
 * replica when this was called. Rejects when the signal aborts before that.
 */
export async function confirm(instance: Instance, numbers: readonly number[], signal: AbortSignal): Promise<boolean> {
  return withSession(
    instance,
    signal,
    async (session) => {
      await session.rows(`UPDATE ${platform}.heartbeat SET at = clock_timestamp()`);
      const [written] = await session.rows<{ position: string }>("SELECT pg_current_wal_flush_lsn()::text AS position");
      for (;;) {
        const rows = await session.rows<{ name: string }>(
          `SELECT DISTINCT application_name AS name FROM pg_stat_replication
           WHERE usename = $1 AND flush_lsn >= $2::pg_lsn`,
          [replicaRole, written?.position],
        );
        const names = new Set(rows.map(({ name }) => name));
        if (numbers.every((number) => names.has(memberName(number)))) return true;
        await sleep(lookEveryMs, undefined, { signal });
      }
    },
    // Members that are asked for a vote are not waited for by the write that asks them.
    { statementMs, isLocal: true },
  );
}
