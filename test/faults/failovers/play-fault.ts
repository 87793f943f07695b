import { expect } from "vitest";
import { waitUntil } from "../../support/wait-until.ts";
import type { FailoverFault } from "./failover-fault.ts";
import type { FailoverGround } from "./failover-ground.ts";

export interface Played {
  /** The longest time without a write by the service's name since the fault. */
  readonly withoutWritesMs: number;
  readonly hasFailedOver: boolean;
  /** Rows that its replica had not received, of an asynchronous service. */
  readonly lost: number;
}

/** Rows that were lost by faults of before, as their services may. */
const lostBefore = new WeakMap<FailoverGround, ReadonlySet<number>>();

/** Plays one fault of a service that is well, and throws unless it is well again, with one primary and its rows. */
export async function playFault(ground: FailoverGround, fault: FailoverFault): Promise<Played> {
  await ground.untilReplicaCounts();
  if (ground.kind === "sync") await untilCommitsWait(ground);
  const before = { ...(await ground.roles()), operations: await ground.operationIds() };
  const last = ground.kind === "sync" ? 0 : await lastReplicated(ground, before.replica);
  let atMs = Number.NaN;
  await fault.run(ground, before, () => {
    atMs = performance.now();
    return atMs;
  });
  const after = await ground.settles(before);
  const hasFailedOver = after.term > before.term;
  if (fault.expects === "failover") expect(after).toMatchObject({ primary: before.replica, term: before.term + 1 });
  if (fault.expects === "none") expect(after).toMatchObject({ primary: before.primary, term: before.term });
  if (fault.expects === "several") expect(after).toMatchObject({ primary: before.primary, term: before.term + 2 });
  expect(ground.sides.overlaps()).toEqual([]);
  return {
    withoutWritesMs: ground.byName.longestWithout(atMs),
    hasFailedOver,
    lost: await lostRows(ground, last, hasFailedOver),
  };
}

async function untilCommitsWait(ground: FailoverGround): Promise<void> {
  await waitUntil("commits wait for the replica", async () => {
    const { primary } = await ground.roles();
    const [row] = await ground.queryNode(primary, "SHOW synchronous_standby_names");
    return row?.["synchronous_standby_names"] !== "";
  });
}

/** A number that is at the replica for certain: what was acknowledged later may be its lag. */
async function lastReplicated(ground: FailoverGround, replica: string): Promise<number> {
  return waitUntil("the replica lags by nothing", async () => {
    const { last } = ground.writer;
    return (await ground.statusOf(replica)).lag_bytes === 0 && { last };
  }).then(({ last }) => last);
}

/** How many rows are missing that were not before; throws when one of them may not be. */
async function lostRows(ground: FailoverGround, last: number, hasFailedOver: boolean): Promise<number> {
  const known = lostBefore.get(ground) ?? new Set<number>();
  const missing = await ground.writer.missing();
  const newly = missing.filter((id) => !known.has(id));
  const wrongly = newly.filter((id) => ground.kind === "sync" || !hasFailedOver || id <= last);
  if (wrongly.length > 0) throw new Error(`${wrongly.length} acknowledged rows are lost: ${wrongly.slice(0, 20)}`);
  lostBefore.set(ground, new Set(missing));
  return newly.length;
}
