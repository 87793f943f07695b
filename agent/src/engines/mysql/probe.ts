import type { Instance } from "../engine-driver.ts";
import { platform } from "./layout.ts";
import { waitsForReplica } from "./replication/peer-port.ts";
import { openSession, type OpenSession } from "./session.ts";

export const probeSql = `UPDATE ${platform}.heartbeat SET at = UTC_TIMESTAMP(6) WHERE id = 1`;

/**
 * Probe of a session whose changes are not replicated, in a row that no replicated transaction changes: one that waits
 * for a replica retains the locks of its rows. Data of an earlier release, and restored data, lack the row.
 */
const localProbeSql = `INSERT INTO ${platform}.heartbeat VALUES (2, UTC_TIMESTAMP(6)) ON DUPLICATE KEY UPDATE at = UTC_TIMESTAMP(6)`;

/** Writes one probe at a time, each in a new session: an open one would not notice that clients cannot connect. */
export interface Probe {
  /** Resolves with true once a write is committed, with false if it takes longer; rejects if the engine refuses it. */
  write(instance: Instance, withinMs: number, signal: AbortSignal): Promise<boolean>;
}

/**
 * Creates the probe. On a full disk the engine blocks inside the write without a time limit, and with it the session:
 * more writes would take more sessions, until no client could connect.
 */
export function createProbe(): Probe {
  let pending: Promise<void> | undefined;

  async function begin(instance: Instance, withinMs: number, signal: AbortSignal): Promise<void> {
    // The probe must not wait for a synchronous replica, whose failure does not mean that this engine fails.
    const isLocal = waitsForReplica(instance);
    const session: OpenSession = await openSession(instance, signal, { withinMs, isLocal });
    try {
      await session.rows(isLocal ? localProbeSql : probeSql);
    } finally {
      session.close();
    }
  }

  return {
    async write(instance, withinMs, signal) {
      pending ??= begin(instance, withinMs, signal).finally(() => {
        pending = undefined;
      });
      const late = Promise.withResolvers<boolean>();
      const timer = setTimeout(() => late.resolve(false), withinMs);
      const current = pending;
      // A failure after the time limit is the next probe's.
      current.catch(() => undefined);
      try {
        return await Promise.race([current.then(() => true), late.promise]);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}
