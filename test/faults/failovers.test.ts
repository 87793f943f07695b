import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lastLogLines } from "../support/platform/platform-logs.ts";
import { type EtcdMembers, startPlatformOfThree } from "../support/platform/etcd-members.ts";
import type { Platform } from "../support/platform/platform.ts";
import { createRandom, type Random } from "../support/random.ts";
import { createServices } from "../support/platform/services.ts";
import type { FailoverFault } from "./failovers/failover-fault.ts";
import { etcdFaults } from "./failovers/etcd-faults.ts";
import { createFailoverFigures } from "./failovers/failover-figures.ts";
import { createFailoverGround, type FailoverGround, type GroundKind } from "./failovers/failover-ground.ts";
import { ladenFaults } from "./failovers/laden-faults.ts";
import { machineFaults } from "./failovers/machine-faults-of-primaries.ts";
import { playFault } from "./failovers/play-fault.ts";
import { sharedFaults } from "./failovers/shared-faults.ts";

/** With `npm run faults -- --failovers [N]`: so many faults; each of the list comes in its turn, in an order of the seed. */
const wanted = Number(process.env["HOLDFAST_TEST_FAILOVERS"] ?? "0");
const seed = Number(process.env["HOLDFAST_TEST_SEED"] ?? Date.now() % 1_000_000);
/** Only faults whose names have this in them. */
const only = process.env["HOLDFAST_TEST_FAULT"] ?? "";
const kinds: readonly GroundKind[] = ["async", "sync", "valkey"];
const sessions = 1_000;
const lagMb = 1_024;
const longestMs = 10 * 60_000;

describe.skipIf(wanted === 0)("services of two nodes whose primary fails again and again", () => {
  const figures = createFailoverFigures();
  const random = createRandom(seed);
  const startedMs = performance.now();
  const say = (line: string) =>
    console.log(`${((performance.now() - startedMs) / 1_000).toFixed(1).padStart(8)}  ${line}`);
  let platform: Platform;
  let etcd: EtcdMembers;
  let grounds: readonly FailoverGround[] = [];

  beforeAll(async () => {
    say(`seed ${seed}, ${wanted} faults`);
    ({ platform, etcd } = await startPlatformOfThree());
    grounds = await Promise.all(
      kinds.map((kind) => createFailoverGround(platform, kind, { random: random.fork(), storageGb: 8, etcd })),
    );
  }, longestMs);

  afterAll(async () => {
    figures.print();
    await Promise.all(grounds.map((ground) => ground.stop()));
    await etcd?.end();
    await platform?.remove();
  }, longestMs);

  const laden = ladenFaults({ lagMb, sessions });
  const all = [...machineFaults, ...sharedFaults, ...etcdFaults, ...laden].filter(({ name }) => name.includes(only));

  it("has one writable primary at any time, every operation ended, and no row lost that may not be", {
    timeout: wanted * longestMs,
  }, async () => {
    const turns = new Map(kinds.map((kind) => [kind, turnsOf(kind, all, random.fork())]));
    const alone = inTurn(
      all.filter(({ isAlone }) => isAlone === true),
      random.fork(),
    );
    let played = 0;
    const play = async (ground: FailoverGround, fault: FailoverFault) => {
      played += 1;
      const outcome = await playFault(ground, fault).catch((error: unknown) => {
        const why = error instanceof Error ? error.message : String(error);
        throw new Error(`${ground.kind}, ${fault.name}, seed ${seed}: ${why}\n${lastLogLines(platform.directory, 60)}`);
      });
      figures.note(fault.name, outcome.withoutWritesMs, outcome.hasFailedOver);
      const { withoutWritesMs, hasFailedOver, lost } = outcome;
      const end = `${(withoutWritesMs / 1_000).toFixed(1)} s without writes, ${hasFailedOver ? "failed over" : "same primary"}`;
      say(`${ground.kind.padEnd(7)} ${fault.name}: ${end}${lost === 0 ? "" : `, ${lost} rows of its lag lost`}`);
    };
    // What services share is met alone; else each service has a fault of its own.
    while (played < wanted) {
      const together = grounds.flatMap((ground) => {
        const fault = turns.get(ground.kind)?.next();
        return fault === undefined ? [] : [{ ground, fault }];
      });
      await Promise.all(together.map(({ ground, fault }) => play(ground, fault)));
      const shared = alone.next();
      if (shared !== undefined && played < wanted) await play(random.pick(grounds), shared);
    }
    const services = createServices(platform);
    for (const { main, sides, writer } of grounds) {
      expect(sides.overlaps()).toEqual([]);
      const operations = await services.operations(main.service.id);
      expect(operations.filter(({ finished_at: at }) => at === null)).toEqual([]);
      expect(writer.acknowledged).toBeGreaterThan(100);
    }
  });
});

function turnsOf(kind: GroundKind, all: readonly FailoverFault[], random: Random) {
  const own = all.filter(({ isAlone, kinds: of = kinds }) => isAlone !== true && of.includes(kind));
  return inTurn(own, random);
}

/** Each of them once, in any order, and then each of them again. */
function inTurn(faults: readonly FailoverFault[], random: Random): { next(): FailoverFault | undefined } {
  let left: FailoverFault[] = [];
  return {
    next() {
      if (faults.length === 0) return undefined;
      if (left.length === 0) left = [...faults];
      const [fault] = left.splice(random.between(0, left.length - 1), 1);
      return fault;
    },
  };
}
