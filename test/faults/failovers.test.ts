import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { type EtcdMembers, startPlatformOfThree } from "@holdfast/testing/platform/etcd-members.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { createRandom, type Random } from "@holdfast/testing/random.ts";
import { createServices } from "@holdfast/testing/platform/services.ts";
import type { FailoverFault } from "./failovers/failover-fault.ts";
import { etcdFaults } from "./failovers/etcd-faults.ts";
import { createFailoverFigures } from "./failovers/failover-figures.ts";
import { createFailoverFixture, type FailoverFixture, type FixtureKind } from "./failovers/failover-fixture.ts";
import { loadFaults } from "./failovers/load-faults.ts";
import { machineFaults } from "./failovers/primary-machine-faults.ts";
import { injectFault } from "./failovers/inject-fault.ts";
import { sharedFaults } from "./failovers/shared-faults.ts";

/** Number of faults, set by `npm run faults -- --failovers [N]`. The seed determines their order. */
const faultCount = Number(process.env["HOLDFAST_TEST_FAILOVERS"] ?? "0");
const seed = Number(process.env["HOLDFAST_TEST_SEED"] ?? Date.now() % 1_000_000);
/** Text that the names of the injected faults must contain. */
const only = process.env["HOLDFAST_TEST_FAULT"] ?? "";
const kinds: readonly FixtureKind[] = ["async", "sync", "valkey"];
const sessions = 1_000;
const lagMb = 1_024;
const longestMs = 10 * 60_000;

describe.skipIf(faultCount === 0)("services of two nodes whose primary fails repeatedly", () => {
  const figures = createFailoverFigures();
  const random = createRandom(seed);
  const startedMs = performance.now();
  const log = (line: string) =>
    console.log(`${((performance.now() - startedMs) / 1_000).toFixed(1).padStart(8)}  ${line}`);
  let platform: Platform;
  let etcd: EtcdMembers;
  let fixtures: readonly FailoverFixture[] = [];

  beforeAll(async () => {
    log(`seed ${seed}, ${faultCount} faults`);
    ({ platform, etcd } = await startPlatformOfThree());
    fixtures = await Promise.all(
      kinds.map((kind) => createFailoverFixture(platform, kind, { random: random.fork(), storageGb: 8, etcd })),
    );
  }, longestMs);

  afterAll(async () => {
    figures.print();
    await Promise.all(fixtures.map((fixture) => fixture.stop()));
    await etcd?.end();
    await platform?.remove();
  }, longestMs);

  const faultsUnderLoad = loadFaults({ lagMb, sessions });
  const all = [...machineFaults, ...sharedFaults, ...etcdFaults, ...faultsUnderLoad].filter(({ name }) =>
    name.includes(only),
  );

  it("always have one writable primary, end every operation, and lose only what is permitted", {
    timeout: faultCount * longestMs,
  }, async () => {
    const schedules = new Map(kinds.map((kind) => [kind, scheduleOf(kind, all, random.fork())]));
    const alone = cycle(
      all.filter(({ isExclusive: isAlone }) => isAlone === true),
      random.fork(),
    );
    let played = 0;
    const play = async (fixture: FailoverFixture, fault: FailoverFault) => {
      played += 1;
      const outcome = await injectFault(fixture, fault).catch((error: unknown) => {
        const why = error instanceof Error ? error.message : String(error);
        throw new Error(
          `${fixture.kind}, ${fault.name}, seed ${seed}: ${why}\n${lastLogLines(platform.directory, 60)}`,
        );
      });
      figures.note(fault.name, outcome.withoutWritesMs, outcome.hasFailedOver);
      const { withoutWritesMs, hasFailedOver, lost } = outcome;
      const end = `${(withoutWritesMs / 1_000).toFixed(1)} s without writes, ${hasFailedOver ? "failed over" : "same primary"}`;
      log(`${fixture.kind.padEnd(7)} ${fault.name}: ${end}${lost === 0 ? "" : `, ${lost} rows of its lag lost`}`);
    };
    // An exclusive fault is injected alone; otherwise each service gets a different fault.
    while (played < faultCount) {
      const concurrent = fixtures.flatMap((fixture) => {
        const fault = schedules.get(fixture.kind)?.next();
        return fault === undefined ? [] : [{ fixture, fault }];
      });
      await Promise.all(concurrent.map(({ fixture, fault }) => play(fixture, fault)));
      const shared = alone.next();
      if (shared !== undefined && played < faultCount) await play(random.pick(fixtures), shared);
    }
    const services = createServices(platform);
    for (const { main, nodeWriters, writer } of fixtures) {
      expect(nodeWriters.overlaps()).toEqual([]);
      const operations = await services.operations(main.service.id);
      expect(operations.filter(({ finished_at: at }) => at === null)).toEqual([]);
      expect(writer.acknowledged).toBeGreaterThan(100);
    }
  });
});

function scheduleOf(kind: FixtureKind, all: readonly FailoverFault[], random: Random) {
  const candidates = all.filter(({ isExclusive: isAlone, kinds: of = kinds }) => isAlone !== true && of.includes(kind));
  return cycle(candidates, random);
}

/** Endless sequence of the faults: each once in random order, then each again. */
function cycle(faults: readonly FailoverFault[], random: Random): { next(): FailoverFault | undefined } {
  let remaining: FailoverFault[] = [];
  return {
    next() {
      if (faults.length === 0) return undefined;
      if (remaining.length === 0) remaining = [...faults];
      const [fault] = remaining.splice(random.between(0, remaining.length - 1), 1);
      return fault;
    },
  };
}
