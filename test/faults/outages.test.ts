import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { crashesOf } from "@holdfast/testing/platform/platform-logs.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { agentOutages } from "./outages/agents.ts";
import { controllerOutages } from "./outages/controllers.ts";
import { createOutageFixture } from "./outages/outage-fixture.ts";
import { storeOutages } from "./outages/stores.ts";

describe("an outage", () => {
  const its = createOutageFixture();
  beforeAll(its.start);
  afterAll(its.remove);
  // A test that failed during its outage fails alone.
  beforeEach(its.expectHealthy);
  afterEach(() => {
    expect(crashesOf(its.platform.directory)).toEqual([]);
  });

  storeOutages(its);
  agentOutages(its);
  controllerOutages(its);

  it("of all processes at once: the same services return with the same data", async () => {
    const stopped = await its.services.createRunning("stopped", { database_type: "valkey" });
    await its.services.verb(stopped.service.id, "stop");
    await its.ask("INSERT INTO kept VALUES (2)");
    const before = await its.platform.rest.get<{ services: ServiceJson[] }>("/managed-services");
    await its.platform.kill9();
    await its.platform.start();
    const same = ({ services: list }: { services: ServiceJson[] }) =>
      list.map(({ id, name, hostname, status, tags }) => ({ id, name, hostname, status, tags }));
    const after = await its.platform.rest.get<{ services: ServiceJson[] }>("/managed-services");
    expect(same(after.json)).toEqual(same(before.json));
    for (const { service } of [its.database, its.cache]) {
      const check = async () => (await its.services.get(service.id)).health.status === "healthy";
      await waitUntil("it is healthy again", check, {
        withinMs: 120_000,
        describe: () => its.services.describe(service.id),
      });
    }
    // A service that is reported healthy is healthy, although the store still has the health of the previous engines.
    await its.expectServing();
    expect((await its.ask("SELECT turn FROM kept ORDER BY turn")).map(({ turn }) => turn)).toEqual([1, 2]);
    expect(its.machineOf(stopped)).toBeUndefined();
    await its.expectWorking();
    await its.services.verb(stopped.service.id, "start");
    await its.services.delete(stopped.service.id);
  });
});
