import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { secretCases } from "../conformance/secrets/secret-cases.ts";
import { incusMissing } from "../support/machines/incus-machines.ts";
import { expectStatus } from "../support/platform/services.ts";
import { waitUntil } from "../support/wait-until.ts";
import { changeCases } from "./incus/changes.ts";
import { incusTexts } from "./incus/incus-texts.ts";
import { createIncusUnderTest } from "./incus/incus-under-test.ts";
import { isolationCases } from "./incus/isolation.ts";
import { networkCases } from "./incus/network.ts";

const missing = await incusMissing();

/** One that is there already and has others' things in it; the tests of faults have one of the platform's own. */
describe.skipIf(missing !== undefined)(
  `a platform with machines of Incus${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    const its = createIncusUnderTest();
    beforeAll(its.start);
    afterAll(its.remove);

    it("tells all that its machine does, its own network among it", async () => {
      const names = ["cpu", "memory", "disk", "disk_iops", "network_in", "network_out"];
      const path = `/managed-services/${its.main.service.id}/metrics?period=15m&${names.map((name) => `metric=${name}`).join("&")}`;
      type Told = { series: { metric: string; points: [number, number, number, number][] }[]; absent: object[] };
      const mostOf = ({ series }: Told) =>
        new Map(series.map(({ metric, points }) => [metric, Math.max(...points.map(([, , , value]) => value))]));
      // A machine that is left alone has moments without a byte to its disk: the next sample shows its heartbeat.
      const told = await waitUntil("each metric has been more than nothing", async () => {
        const { json } = expectStatus(await its.platform.rest.get<Told>(path), 200);
        const most = mostOf(json);
        return names.every((name) => (most.get(name) ?? 0) > 0) ? json : undefined;
      });
      expect(told.absent).toEqual([]);
      const most = mostOf(told);
      expect(["cpu", "memory", "disk"].filter((name) => (most.get(name) ?? 0) > 100)).toEqual([]);
    });

    networkCases(its);
    isolationCases(its);
    changeCases(its);
    // Last, so that logs and stores have all that was done before as well.
    secretCases(
      async () => {
        const { images, platform, services, main } = its;
        await images.choose(images.good);
        const path = `/managed-services/${main.service.id}/maintenance`;
        await waitUntil("what is made is made from a good image", async () => {
          const { json } = await platform.rest.get<{ image: string; updates: object[] }>(path);
          return json.image === images.good && json.updates.length === 0;
        });
        const valkey = await services.createRunning("session", { database_type: "valkey" });
        return { platform, services, postgresql: main, valkey };
      },
      () => incusTexts(its),
    );

    it("takes all that is its own from the daemon with clean, and nothing else", async () => {
      expect(await its.daemon.everything()).not.toEqual(its.before);
      await its.removePlatform();
      expect(await its.daemon.everything()).toEqual(its.before);
    });
  },
);
