import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { secretCases } from "../conformance/secrets/secret-cases.ts";
import { incusMissing } from "@holdfast/testing/machines/incus-machines.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { changeCases } from "./incus/changes.ts";
import { incusTexts } from "./incus/incus-texts.ts";
import { createIncusUnderTest } from "./incus/incus-under-test.ts";
import { isolationCases } from "./incus/isolation.ts";
import { networkCases } from "./incus/network.ts";

const missing = await incusMissing();

/** On an existing daemon with objects of another user; in the tests of faults the platform has its own daemon. */
describe.skipIf(missing !== undefined)(
  `a platform with machines of Incus${missing === undefined ? "" : ` (skipped: ${missing})`}`,
  () => {
    const fixture = createIncusUnderTest();
    beforeAll(fixture.start);
    afterAll(fixture.remove);

    it("reports all metrics of its machine, including the metrics of its network", async () => {
      const names = ["cpu", "memory", "disk", "disk_iops", "network_in", "network_out"];
      const path = `/managed-services/${fixture.main.service.id}/metrics?period=15m&${names.map((name) => `metric=${name}`).join("&")}`;
      type Metrics = { series: { metric: string; points: [number, number, number, number][] }[]; absent: object[] };
      const mostOf = ({ series }: Metrics) =>
        new Map(series.map(({ metric, points }) => [metric, Math.max(...points.map(([, , , value]) => value))]));
      // An idle machine may write no byte to its disk for some seconds: a later sample includes its heartbeat.
      const metrics = await waitUntil("each metric has been positive", async () => {
        const { json } = expectStatus(await fixture.platform.rest.get<Metrics>(path), 200);
        const max = mostOf(json);
        return names.every((name) => (max.get(name) ?? 0) > 0) ? json : undefined;
      });
      expect(metrics.absent).toEqual([]);
      const max = mostOf(metrics);
      expect(["cpu", "memory", "disk"].filter((name) => (max.get(name) ?? 0) > 100)).toEqual([]);
    });

    networkCases(fixture);
    isolationCases(fixture);
    changeCases(fixture);
    // Last, so that logs and stores include all of the earlier tests.
    secretCases(
      async () => {
        const { images, platform, services, main } = fixture;
        await images.choose(images.valid);
        const path = `/managed-services/${main.service.id}/maintenance`;
        await waitUntil("new machines have a valid image", async () => {
          const { json } = await platform.rest.get<{ image: string; updates: object[] }>(path);
          return json.image === images.valid && json.updates.length === 0;
        });
        const valkey = await services.createRunning("session", { database_type: "valkey" });
        return { platform, services, postgresql: main, valkey };
      },
      () => incusTexts(fixture),
    );

    it("removes exactly its own objects from the daemon with clean", async () => {
      expect(await fixture.daemon.everything()).not.toEqual(fixture.before);
      await fixture.removePlatform();
      expect(await fixture.daemon.everything()).toEqual(fixture.before);
    });
  },
);
