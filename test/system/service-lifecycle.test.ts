import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import type { ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
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

  it("continues under another name, with the same host name, and the old name is free", async () => {
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
    await its.services.deleted(old.id);
  });

  it("is not deleted under deletion protection", async () => {
    const { id } = await its.services.create("guarded", { database_type: "valkey", deletion_protection: true });
    const refused = await its.platform.rest.delete<ProblemJson>(`/managed-services/${id}`);
    expect(expectStatus(refused, 409).json.code).toBe("deletion_protected");
    expectStatus(await its.platform.rest.patch(`/managed-services/${id}`, { deletion_protection: false }), 200);
    await its.services.delete(id);
  });
});
