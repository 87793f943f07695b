import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { killAtOnce } from "../../support/platform/platform-processes.ts";
import type { ProblemJson } from "../../support/api/service-json.ts";
import { expectStatus } from "../../support/platform/services.ts";
import { waitUntil } from "../../support/wait-until.ts";
import { changeUnderLocks, endOf } from "../engine-changes.ts";
import { type OutageGround, outageMs, type UnderWayJson } from "./outage-ground.ts";

/** A machine does not do what it is told. */
export function agentOutages(its: OutageGround): void {
  it("of an agent: the engine serves, what needs the agent waits for it, and nothing is started twice", async () => {
    const machine = its.machineOf(its.database);
    const begun: string[] = [];
    const until = Date.now() + outageMs;
    killAtOnce(machine?.agent ?? 0, "SIGSTOP");
    const asked = Promise.all([
      its.platform.rest.post<UnderWayJson>(its.path("/database-users"), { username: "late", role: "readonly" }),
      its.platform.rest.post<UnderWayJson>(its.path("/databases"), { name: "late" }),
    ]);
    // Nobody looks at them when the test fails before.
    asked.catch(() => undefined);
    try {
      while (Date.now() < until) {
        await its.serve();
        const { status } = await its.services.get(its.database.service.id);
        expect(status).toBe("Running");
        await sleep(1_000);
      }
      for (const answer of await asked) begun.push(expectStatus(answer, 202).json.operation.id);
      await waitUntil(
        "it is known that nobody answers",
        async () => (await its.services.get(its.database.service.id)).nodes[0]?.status === "Unreachable",
      );
      // Nothing is begun any more.
      const { json } = expectStatus(
        await its.platform.rest.post<ProblemJson>(its.path("/databases"), { name: "later" }),
        503,
      );
      expect(json.code).toBe("machine_unreachable");
      const { health } = await its.services.get(its.database.service.id);
      expect(health.status).not.toBe("healthy");
    } finally {
      killAtOnce(machine?.agent ?? 0, "SIGCONT");
    }
    await waitUntil(
      "the service is healthy again",
      async () => (await its.services.get(its.database.service.id)).health.status === "healthy",
      { everyMs: 200, describe: () => its.services.describe(its.database.service.id) },
    );
    expect(its.machineOf(its.database)).toEqual(machine);
    for (const id of begun) expect(await endOf(its.platform, id)).toMatchObject({ status: "completed" });
    // What was told to be under way is done, what was told to have failed is not.
    const { databases } = (await its.platform.rest.get<{ databases: { name: string }[] }>(its.path("/databases"))).json;
    expect(databases.map(({ name }) => name)).toEqual(["defaultdb", "late"]);
    const { users } = (await its.platform.rest.get<{ users: { username: string }[] }>(its.path("/database-users")))
      .json;
    expect(users.map(({ username }) => username)).toEqual(["app_user", "late"]);
    expectStatus(await its.platform.rest.delete(its.path("/databases/late")), 204);
    expectStatus(await its.platform.rest.delete(its.path("/database-users/late")), 204);
  });

  it("of what users and databases are changed by: each change ends as the engine has it", async () => {
    await changeUnderLocks(its.platform, its.database);
  });
}
