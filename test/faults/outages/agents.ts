import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { changeUnderLocks, endOf } from "../engine-changes.ts";
import { type OutageFixture, outageMs, type InProgressJson } from "./outage-fixture.ts";

/** Outages of a machine's agent, and of locks that its tasks wait for. */
export function agentOutages(fixture: OutageFixture): void {
  it("of an agent: the engine serves, changes that need the agent wait, and nothing starts twice", async () => {
    const machine = fixture.machineOf(fixture.database);
    const started: string[] = [];
    const until = Date.now() + outageMs;
    killImmediately(machine?.agent ?? 0, "SIGSTOP");
    const requests = Promise.all([
      fixture.platform.rest.post<InProgressJson>(fixture.path("/database-users"), {
        username: "late",
        role: "readonly",
      }),
      fixture.platform.rest.post<InProgressJson>(fixture.path("/databases"), { name: "late" }),
    ]);
    // Handles the rejections when the test fails earlier.
    requests.catch(() => undefined);
    try {
      while (Date.now() < until) {
        await fixture.expectServing();
        const { status } = await fixture.services.get(fixture.database.service.id);
        expect(status).toBe("Running");
        // Time: the rate of the checks during the outage.
        await sleep(1_000);
      }
      for (const response of await requests) started.push(expectStatus(response, 202).json.operation.id);
      await waitUntil(
        "the missing agent is detected",
        async () => (await fixture.services.get(fixture.database.service.id)).nodes[0]?.status === "Unreachable",
      );
      // The agent begins no new work.
      const { json } = expectStatus(
        await fixture.platform.rest.post<ProblemJson>(fixture.path("/databases"), { name: "later" }),
        503,
      );
      expect(json.code).toBe("machine_unreachable");
      const { health } = await fixture.services.get(fixture.database.service.id);
      expect(health.status).not.toBe("healthy");
    } finally {
      killImmediately(machine?.agent ?? 0, "SIGCONT");
    }
    await waitUntil(
      "the service is healthy again",
      async () => (await fixture.services.get(fixture.database.service.id)).health.status === "healthy",
      { everyMs: 200, describe: () => fixture.services.describe(fixture.database.service.id) },
    );
    expect(fixture.machineOf(fixture.database)).toEqual(machine);
    for (const id of started) expect(await endOf(fixture.platform, id)).toMatchObject({ status: "completed" });
    // Changes that were reported in progress are done, changes that were reported failed are not.
    const { databases } = (
      await fixture.platform.rest.get<{ databases: { name: string }[] }>(fixture.path("/databases"))
    ).json;
    expect(databases.map(({ name }) => name)).toEqual(["defaultdb", "late", "postgres"]);
    const { users } = (
      await fixture.platform.rest.get<{ users: { username: string }[] }>(fixture.path("/database-users"))
    ).json;
    expect(users.map(({ username }) => username)).toEqual(["app_user", "late"]);
    expectStatus(await fixture.platform.rest.delete(fixture.path("/databases/late")), 204);
    expectStatus(await fixture.platform.rest.delete(fixture.path("/database-users/late")), 204);
  });

  it("of locks on users and databases: each change ends with the engine's state", async () => {
    await changeUnderLocks(fixture.platform, fixture.database);
  });
}
