import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ControlService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createFakeClock, type FakeClock, findFakeClockLibrary } from "@holdfast/testing/controller/fake-clock.ts";
import { asOperator } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { type SecondController, startSecondController } from "@holdfast/testing/platform/second-controller.ts";
import { createRandom } from "@holdfast/testing/random.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { FailoverFault } from "./failovers/failover-fault.ts";
import { createFailoverFixture, type FailoverFixture } from "./failovers/failover-fixture.ts";
import { injectFault } from "./failovers/inject-fault.ts";

const library = findFakeClockLibrary();
const isEnabled = Number(process.env["HOLDFAST_TEST_FAILOVERS"] ?? "0") > 0;
const why = library === undefined ? " (skipped: libfaketime is not here and apt does not bring it)" : "";
const minuteS = 60;
const longMs = 300_000;

describe.skipIf(!isEnabled || library === undefined)(
  `a failover by a controller whose wall clock is stepped${why}`,
  () => {
    let platform: Platform;
    let second: SecondController;
    let clock: FakeClock;
    let fixture: FailoverFixture;

    beforeAll(async () => {
      platform = await startPlatform();
      clock = createFakeClock(library ?? "", join(platform.directory, "clock"));
      second = await startSecondController(platform, clock.environment);
      // A draining controller sends no requests to agents any more.
      const bySecond = { ...platform, rest: second.rest };
      fixture = await createFailoverFixture(bySecond, "sync", { random: createRandom(1) });
      // From here on only the controller with the stepped clock decides.
      await asOperator(platform, ControlService, (rpcs) => rpcs.drainController({ controllerId: "controller-1" }));
      await waitUntil("the other one has everything", async () => {
        const { controllers } = await asOperator(platform, ControlService, (rpcs) => rpcs.listControllers({}));
        return controllers.every(
          ({ id, shards, sessions }) => id === "controller-2" || (shards === 0 && sessions === 0),
        );
      });
    }, longMs);
    afterAll(async () => {
      await fixture?.stop();
      await second?.stop();
      await platform?.remove();
    }, longMs);

    const stepped = (name: string, before: number, within: number): FailoverFault => ({
      name,
      expects: "failover",
      async run({ pause, pidsOf, acceptsWrites, reaches }, { primary, newHost, operations }, markFault) {
        clock.step(before);
        const repair = pause(pidsOf(primary, "machine"));
        const atMs = markFault();
        try {
          await reaches("FencePrimary", operations);
          clock.step(within);
          await acceptsWrites(newHost, atMs);
        } finally {
          repair();
        }
      },
    });

    it.each([
      stepped("a minute ahead", minuteS, minuteS),
      stepped("a minute back, while it waits", minuteS, 0),
      stepped("a minute ahead, while it waits", 0, minuteS),
      stepped("two minutes back", -minuteS, -minuteS),
    ])(
      "$name: the replica accepts writes without extra delay, and has every row",
      async (fault) => {
        const { withoutWritesMs, lost } = await injectFault(fixture, fault);
        console.log(`${fault.name}: ${(withoutWritesMs / 1_000).toFixed(1)} s without writes`);
        expect([lost, withoutWritesMs < 30_000]).toEqual([0, true]);
      },
      longMs,
    );

    it(
      "causes no failover while the machine is healthy",
      async () => {
        const { primary, term } = await fixture.roles();
        for (const seconds of [minuteS, -minuteS, 0]) {
          clock.step(seconds);
          // Time: the length of the wrong time.
          await sleep(8_000);
        }
        expect(await fixture.roles()).toMatchObject({ primary, term });
      },
      longMs,
    );
  },
);
