import type { Instance } from "../../engine-driver.ts";
import { platform } from "../layout.ts";
import { type Session, withSession } from "../session.ts";
import { waitsForReplica } from "./peer-port.ts";

/**
 * Replaces acknowledgments of synchronous replicas that were lost. A replica that received a transaction without
 * acknowledging it, because its connection was lost or was one that does not acknowledge, does not receive it again: by
 * its GTIDs it has it. The commit waits until a later transaction is acknowledged, which includes all before it. If the
 * client that waits is the only one that writes, there is no later one, and a copy for a new replica waits too.
 */
export interface LostAcknowledgments {
  /** Commits a transaction if commits wait for a connected replica and none was acknowledged since the last call. */
  check(instance: Instance, session: Session): Promise<void>;
}

const withinMs = 2_000;
const nameCount = 4;
const names = ["clients", "wait_sessions", "yes_tx"].map((name) => `Rpl_semi_sync_source_${name}`);

export function createLostAcknowledgments(): LostAcknowledgments {
  /** Number of acknowledged commits at the last call, if commits waited then. */
  let before: number | undefined;
  let attempts = 0;

  return {
    async check(instance, session) {
      const [clients = 0, waiting = 0, acknowledged = 0] = waitsForReplica(instance) ? await readStatus(session) : [];
      const waits = clients > 0 && waiting > 0;
      const isStuck = waits && acknowledged === before;
      before = waits ? acknowledged : undefined;
      if (!isStuck) return;
      attempts += 1;
      // Its own acknowledgment may be lost too. Then the next call has another name, since this one remains locked.
      commit(instance, attempts % nameCount).catch(() => undefined);
    },
  };
}

async function readStatus(session: Session): Promise<number[]> {
  const rows = await session.rows<{ name: string; value: string }>(
    "SELECT VARIABLE_NAME AS name, VARIABLE_VALUE AS value FROM performance_schema.global_status WHERE VARIABLE_NAME IN (?)",
    [names],
  );
  const values = new Map(rows.map(({ name, value }) => [name, Number(value)]));
  return names.map((name) => values.get(name) ?? 0);
}

/** A transaction that changes nothing, and that each member can apply: its table never exists. */
function commit(instance: Instance, number: number): Promise<unknown> {
  const signal = AbortSignal.timeout(2 * withinMs);
  const sql = `DROP TABLE IF EXISTS ${platform}.acknowledged_${number}`;
  return withSession(instance, signal, (session) => session.rows(sql), { withinMs });
}
