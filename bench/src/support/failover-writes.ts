import { startTestEtcd } from "@holdfast/testing/controller/etcd.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { createPatroniPair, documentedChecks, quickChecks } from "../peers/patroni-pair.ts";
import { defaultTimeouts, preparePatroni, smallestTimeouts } from "../peers/patroni.ts";
import { createSentinelPair } from "../peers/sentinel-pair.ts";
import { median, ms, percentile, print, times } from "./figures.ts";
import { createHoldfastPair } from "./holdfast-pair.ts";
import { type Fault, type FailingPair, gapOf } from "./write-gaps.ts";

/** Silence after which controllers suspect a primary. */
const silenceMs = 4_500;
/** Time of a Sentinel failover beside the silence. */
const sentinelShareMs = 350;

type Gaps = Readonly<Record<string, readonly number[]>>;

/** Measures the time without writes of Holdfast and of Patroni, alternating. */
export async function measureWrites(on: Platform, switchovers: number, failures: number): Promise<void> {
  const patroni = await preparePatroni();
  const etcd = await startTestEtcd();
  const pairs: Record<string, FailingPair> = {};
  try {
    pairs["holdfast"] = await createHoldfastPair(on, "postgresql");
    const byDefault = { timeouts: defaultTimeouts, checks: documentedChecks };
    pairs["Patroni, default"] = await createPatroniPair(patroni, etcd, byDefault);
    const atLeast = { timeouts: smallestTimeouts, checks: quickChecks };
    pairs["Patroni, smallest"] = await createPatroniPair(patroni, etcd, atLeast);

    printSwitchovers(await inTurn(pairs, "switchover", switchovers));
    for (const [name, { writer }] of Object.entries(pairs)) {
      const missing = await writer.missing();
      if (missing > 0) throw new Error(`${missing} acknowledged rows of ${name} are missing after switchovers`);
    }
    const found = new Map<Fault, Gaps>();
    // The order alternates: a machine that crashes again within a minute starts later, on purpose.
    for (let round = 0; round < failures; round += 1)
      for (const fault of ["engine killed", "machine killed", "machine stands still"] as const)
        found.set(fault, await inTurn(pairs, fault, 1, found.get(fault)));
    for (const [fault, gaps] of found) printFailures(fault, gaps);
    await printMissing(pairs);
  } finally {
    for (const pair of Object.values(pairs).toReversed()) await pair.close();
    await etcd.stop();
  }
}

/**
 * Measures the time without writes of Holdfast and of Sentinel when the primary is paused, alternating; both wait for
 * the same silence.
 */
export async function measureValkey(on: Platform, failures: number): Promise<void> {
  const pairs: Record<string, FailingPair> = {};
  try {
    pairs["holdfast"] = await createHoldfastPair(on, "valkey");
    pairs["Sentinel"] = await createSentinelPair(silenceMs);
    const gaps = await inTurn(pairs, "machine stands still", failures);
    printGaps("machine stands still, valkey", gaps);
    const holdfast = median(gaps["holdfast"] ?? []);
    print("  Holdfast to down-after + 0.35 s", times(holdfast / (silenceMs + sentinelShareMs)), "<= 1.1x");
    print("  Holdfast to Sentinel", times(holdfast / median(gaps["Sentinel"] ?? [])));
    await printMissing(pairs);
  } finally {
    for (const pair of Object.values(pairs).toReversed()) await pair.close();
  }
}

/** Adds rounds to the earlier results. */
async function inTurn(
  pairs: Readonly<Record<string, FailingPair>>,
  fault: Fault,
  rounds: number,
  before: Gaps = {},
): Promise<Gaps> {
  const gaps = Object.fromEntries(Object.keys(pairs).map((name) => [name, [...(before[name] ?? [])]]));
  for (let round = 0; round < rounds; round += 1)
    for (const [name, pair] of Object.entries(pairs)) gaps[name]?.push(await gapOf(pair, fault));
  return gaps;
}

function printSwitchovers(gaps: Gaps): void {
  printGaps("switchover", gaps);
  print("  Holdfast, p50", ms(median(gaps["holdfast"] ?? [])), "<= 500 ms");
}

function printFailures(fault: Fault, gaps: Gaps): void {
  printGaps(fault, gaps);
  const holdfast = gaps["holdfast"] ?? [];
  const to = (peer: string) => times(median(holdfast) / median(gaps[peer] ?? []));
  print("  Holdfast, p50 / p95", `${ms(median(holdfast))} / ${ms(percentile(holdfast, 0.95))}`, "<= 3 s / 4 s");
  print("  Holdfast to Patroni, default", to("Patroni, default"), "<= 0.125x");
  print("  Holdfast to Patroni, smallest", to("Patroni, smallest"), "<= 0.167x");
}

function printGaps(fault: string, gaps: Gaps): void {
  for (const [name, all] of Object.entries(gaps)) {
    const range = `${ms(Math.min(...all))} - ${ms(Math.max(...all))}`;
    print(`${fault}, ${name}: without a write, p50 (range)`, `${ms(median(all))} (${range})`);
  }
}

/** Replication is asynchronous: writes that only a failed primary had are lost. */
async function printMissing(pairs: Readonly<Record<string, FailingPair>>): Promise<void> {
  for (const [name, { writer }] of Object.entries(pairs)) {
    const missing = await writer.missing();
    print(`acknowledged rows of ${name} that failures lost`, `${missing} of ${writer.acknowledgedAt.length}`);
  }
}
