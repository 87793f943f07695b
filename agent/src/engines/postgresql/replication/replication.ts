import { setTimeout as sleep } from "node:timers/promises";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { platform, replicaRole } from "../layout.ts";
import { admit } from "./admit.ts";
import { saveDiscarded } from "./discarded.ts";
import { copy, dataRole, requiredParameters, rewind, shutdownPosition } from "./follow.ts";
import { memberName } from "./members.ts";
import { status } from "./status.ts";
import { withSession } from "../session.ts";
import type { ReplicationFacet } from "../../replication-facet.ts";

/**
 * Streaming replication. Members authenticate by certificate, and each has a physical slot on the primary. Data that
 * follow a primary are marked by `standby.signal` (follow.ts); a former primary is rewound by pg_rewind after its
 * surplus log was saved (discarded.ts).
 */
export function createReplication(deps: EngineDeps): ReplicationFacet {
  return {
    dataRole,
    copy: (instance, signal) => copy(deps, instance, signal),
    rewind: (instance, signal) => rewind(deps, instance, signal),
    saveDiscarded: (instance, target, signal) => saveDiscarded(deps, instance, target, signal),
    admit,
    prepareStop,
    confirm,
    requiredParameters: (instance, signal) => requiredParameters(deps, instance, signal),
    shutdownPosition: (instance, signal) => shutdownPosition(deps, instance, signal),
    status,
  };
}

const statementMs = 2_000;
const pollIntervalMs = 50;

/**
 * Writes a record and waits until each of these members has received it, which proves that each was this primary's
 * replica when this was called. Rejects if the signal aborts first.
 */
async function confirm(instance: Instance, numbers: readonly number[], signal: AbortSignal): Promise<boolean> {
  return withSession(
    instance,
    signal,
    async (session) => {
      await session.rows(`UPDATE ${platform}.heartbeat SET at = clock_timestamp()`);
      const [record] = await session.rows<{ position: string }>("SELECT pg_current_wal_flush_lsn()::text AS position");
      for (;;) {
        const rows = await session.rows<{ name: string }>(
          `SELECT DISTINCT application_name AS name FROM pg_stat_replication
           WHERE usename = $1 AND flush_lsn >= $2::pg_lsn`,
          [replicaRole, record?.position],
        );
        const names = new Set(rows.map(({ name }) => name));
        if (numbers.every((number) => names.has(memberName(number)))) return true;
        await sleep(pollIntervalMs, undefined, { signal });
      }
    },
    // The write itself must not wait for the members that it queries.
    { statementMs, isLocal: true },
  );
}

/** Replay of the received log may take this long. */
const waitSeconds = 60;

/** Promotes a running replica; does nothing for an engine that accepts writes. Throws while it is still replaying. */
export async function becomePrimary(instance: Instance, signal: AbortSignal): Promise<void> {
  if (instance.spec.replication === undefined) return;
  await withSession(
    instance,
    signal,
    async (session) => {
      const [before] = await session.rows<{ recovering: boolean }>("SELECT pg_is_in_recovery() AS recovering");
      if (before?.recovering !== true) return;
      const [after] = await session.rows<{ promoted: boolean }>(`SELECT pg_promote(true, ${waitSeconds}) AS promoted`);
      if (after?.promoted !== true) throw new Error("The replica is still replaying received log.");
      // Before 16, pg_rewind of a follower reads the new timeline from the last checkpoint only.
      if (Number(instance.spec.version) < 16) await session.rows("CHECKPOINT");
    },
    { statementMs: (waitSeconds + 30) * 1_000 },
  );
}

/** The old primary has 30 s in all to stop. */
const withinMs = 10_000;

/** Writes a checkpoint while clients still write, so that the shutdown's own checkpoint is short. */
async function prepareStop(instance: Instance, signal: AbortSignal): Promise<void> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  // The shutdown follows even if the checkpoint fails.
  await withSession(instance, bounded, (session) => session.rows("CHECKPOINT"), { statementMs: withinMs }).catch(
    () => undefined,
  );
}
