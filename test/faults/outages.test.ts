import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { crashesOf } from "@holdfast/testing/platform/platform-logs.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { agentOutages } from "./outages/agents.ts";
import { controllerOutages } from "./outages/controllers.ts";
import { createOutageFixture } from "./outages/outage-fixture.ts";
import { storeOutages } from "./outages/stores.ts";

describe("an outage", () => {
  const fixture = createOutageFixture();
  beforeAll(fixture.start);
  afterAll(fixture.remove);
  // A test that failed during its outage does not make later tests fail.
  beforeEach(fixture.expectHealthy);
  afterEach(() => {
    expect(crashesOf(fixture.platform.directory)).toEqual([]);
  });

  storeOutages(fixture);
  agentOutages(fixture);
  controllerOutages(fixture);

  it("of all processes at the same time: the same services return with the same data", async () => {
    const stopped = await fixture.services.createRunning("stopped", { database_type: "valkey" });
    await fixture.services.verb(stopped.service.id, "stop");
    await fixture.query("INSERT INTO kept VALUES (2)");
    const before = await fixture.platform.rest.get<{ services: ServiceJson[] }>("/managed-services");
    await fixture.platform.kill9();
    await fixture.platform.start();
    const same = ({ services: list }: { services: ServiceJson[] }) =>
      list.map(({ id, name, hostname, status, tags }) => ({ id, name, hostname, status, tags }));
    const after = await fixture.platform.rest.get<{ services: ServiceJson[] }>("/managed-services");
    expect(same(after.json)).toEqual(same(before.json));
    for (const { service } of [fixture.database, fixture.cache]) {
      const check = async () => (await fixture.services.get(service.id)).health.status === "healthy";
      await waitUntil("it is healthy again", check, {
        withinMs: 120_000,
        describe: () => fixture.services.describe(service.id),
      });
    }
    // A service that is reported healthy is healthy, although the store still has the health of the previous engines.
    await fixture.expectServing();
    expect((await fixture.query("SELECT turn FROM kept ORDER BY turn")).map(({ turn }) => turn)).toEqual([1, 2]);
    expect(fixture.machineOf(stopped)).toBeUndefined();
    await fixture.expectWorking();
    await fixture.services.verb(stopped.service.id, "start");
    await fixture.services.delete(stopped.service.id);
  });
});
