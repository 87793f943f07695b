import { writeFileSync } from "node:fs";
import { readlink } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "../support/clients.ts";
import { killAtOnce } from "../support/platform-processes.ts";
import type { ProblemJson, ServiceJson } from "../support/service-json.ts";
import { expectStatus } from "../support/services.ts";
import { waitUntil } from "../support/wait-until.ts";
import { creationCases } from "./service-lifecycle/creation.ts";
import { createLifecycleUnderTest } from "./service-lifecycle/lifecycle-under-test.ts";
import { timeToLiveCases } from "./service-lifecycle/time-to-live.ts";
import { verbCases } from "./service-lifecycle/verbs.ts";

describe("the life of a managed service", () => {
  const its = createLifecycleUnderTest();
  beforeAll(its.start);
  afterAll(its.remove);

  creationCases(its);
  verbCases(its);
  timeToLiveCases(its);

  it("goes on under another name, with the same host name, and the old name is free", async () => {
    const { service, connection, password } = await its.services.createRunning("before");
    const renamed = await its.platform.rest.patch<ServiceJson>(`/managed-services/${service.id}`, { name: "after" });
    expect(expectStatus(renamed, 200).json).toMatchObject({ name: "after", hostname: service.hostname });
    await queryOnce(its.platform, connection, { password }, "SELECT 1");
    const taken = await its.platform.rest.post<ProblemJson>("/managed-services", {
      name: "after",
      database_type: "valkey",
      plan_name: "tier-1",
      storage_size_gb: 1,
    });
    expect(expectStatus(taken, 409).json.code).toBe("name_taken");
    const old = await its.services.create("before", { database_type: "valkey" });
    await its.platform.rest.delete(`/managed-services/${old.id}`);
    await its.services.delete(service.id);
    await its.services.gone(old.id);
  });

  it("is not deleted under deletion protection", async () => {
    const { id } = await its.services.create("guarded", { database_type: "valkey", deletion_protection: true });
    const refused = await its.platform.rest.delete<ProblemJson>(`/managed-services/${id}`);
    expect(expectStatus(refused, 409).json.code).toBe("deletion_protected");
    expectStatus(await its.platform.rest.patch(`/managed-services/${id}`, { deletion_protection: false }), 200);
    await its.services.delete(id);
  });

  it("is in Error with a reason when its engine cannot run, and can still be deleted", async () => {
    const { service } = await its.services.createRunning("broken");
    const machine = () => its.platform.processes().machines.find(({ id }) => id === service.nodes[0]?.id);
    const control = await findInMachine(machine()?.engine ?? 0, "global/pg_control");
    writeFileSync(control, "not a control file");
    killAtOnce(machine()?.engine ?? 0);
    const failed = await waitUntil(
      "the service is in Error",
      async () => {
        const now = await its.services.get(service.id);
        return now.status === "Error" ? now : undefined;
      },
      { withinMs: 150_000, everyMs: 500, describe: () => its.services.describe(service.id) },
    );
    expect(failed.error?.message).not.toBe("");
    expect(failed.operation).toBeNull();
    expect(expectStatus(await its.post(service.id, "restart"), 409).json.code).toBe("wrong_state");
    await its.services.delete(service.id);
  });
});

/** Path by which this process reaches a file of the engine's data directory, inside the machine's mounts. */
async function findInMachine(engine: number, file: string): Promise<string> {
  const inside = await readlink(`/proc/${engine}/cwd`);
  return `/proc/${engine}/root${inside}/${file}`;
}
