import { expect } from "vitest";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { FailoverFault } from "./failover-fault.ts";
import type { FailoverFixture } from "./failover-fixture.ts";

export interface InjectedFault {
  /** Maximum time in ms without a write by the service's name since the fault. */
  readonly withoutWritesMs: number;
  readonly hasFailedOver: boolean;
  /** Number of rows that the replica of an asynchronous service had not received. */
  readonly lost: number;
}

/** Rows that earlier faults lost, where the service's mode permits it. */
const lostBefore = new WeakMap<FailoverFixture, ReadonlySet<number>>();

/** Injects one fault into a healthy service, and throws unless the service recovers with one primary and its rows. */
export async function injectFault(fixture: FailoverFixture, fault: FailoverFault): Promise<InjectedFault> {
  await fixture.untilReplicaCounts();
  if (fixture.kind === "sync") await untilCommitsWait(fixture);
  const before = { ...(await fixture.roles()), operations: await fixture.operationIds() };
  const last = fixture.kind === "sync" ? 0 : await lastReplicated(fixture, before.replica);
  let atMs = Number.NaN;
  await fault.run(fixture, before, () => {
    atMs = performance.now();
    return atMs;
  });
  const after = await fixture.settles(before);
  const hasFailedOver = after.term > before.term;
  if (fault.expects === "failover") expect(after).toMatchObject({ primary: before.replica, term: before.term + 1 });
  if (fault.expects === "none") expect(after).toMatchObject({ primary: before.primary, term: before.term });
  if (fault.expects === "several") expect(after).toMatchObject({ primary: before.primary, term: before.term + 2 });
  expect(fixture.nodeWriters.overlaps()).toEqual([]);
  return {
    withoutWritesMs: fixture.byName.longestWithout(atMs),
    hasFailedOver,
    lost: await lostRows(fixture, last, hasFailedOver),
  };
}

async function untilCommitsWait(fixture: FailoverFixture): Promise<void> {
  await waitUntil("commits wait for the replica", async () => {
    const { primary } = await fixture.roles();
    const [row] = await fixture.queryNode(primary, "SHOW synchronous_standby_names");
    return row?.["synchronous_standby_names"] !== "";
  });
}

/** Number of the last row that the replica certainly has; later acknowledged rows may be in its lag. */
async function lastReplicated(fixture: FailoverFixture, replica: string): Promise<number> {
  return waitUntil("the replica lags by nothing", async () => {
    const { last } = fixture.writer;
    return (await fixture.statusOf(replica)).lag_bytes === 0 && { last };
  }).then(({ last }) => last);
}

/** Number of rows that were lost since the last fault; throws for a row that must not be lost. */
async function lostRows(fixture: FailoverFixture, last: number, hasFailedOver: boolean): Promise<number> {
  const lostEarlier = lostBefore.get(fixture) ?? new Set<number>();
  const missing = await fixture.writer.missing();
  const newly = missing.filter((id) => !lostEarlier.has(id));
  const wrongly = newly.filter((id) => fixture.kind === "sync" || !hasFailedOver || id <= last);
  if (wrongly.length > 0) throw new Error(`${wrongly.length} acknowledged rows are lost: ${wrongly.slice(0, 20)}`);
  lostBefore.set(fixture, new Set(missing));
  return newly.length;
}
