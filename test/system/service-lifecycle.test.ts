import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import type { ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { creationCases } from "./service-lifecycle/creation.ts";
import { createLifecycleUnderTest } from "./service-lifecycle/lifecycle-under-test.ts";
import { timeToLiveCases } from "./service-lifecycle/time-to-live.ts";
import { verbCases } from "./service-lifecycle/verbs.ts";

describe("the life of a managed service", () => {
  const fixture = createLifecycleUnderTest();
  beforeAll(fixture.start);
  afterAll(fixture.remove);

  creationCases(fixture);
  verbCases(fixture);
  timeToLiveCases(fixture);

  it("continues under another name, with the same host name, and the old name is free", async () => {
    const { service, connection, password } = await fixture.services.createRunning("before");
    const renamed = await fixture.platform.rest.patch<ServiceJson>(`/managed-services/${service.id}`, {
      name: "after",
    });
    expect(expectStatus(renamed, 200).json).toMatchObject({ name: "after", hostname: service.hostname });
    await queryOnce(fixture.platform, connection, { password }, "SELECT 1");
    const duplicate = await fixture.platform.rest.post<ProblemJson>("/managed-services", {
      name: "after",
      database_type: "valkey",
      plan_name: "tier-1",
      storage_size_gb: 1,
    });
    expect(expectStatus(duplicate, 409).json.code).toBe("name_taken");
    const old = await fixture.services.create("before", { database_type: "valkey" });
    await fixture.platform.rest.delete(`/managed-services/${old.id}`);
    await fixture.services.delete(service.id);
    await fixture.services.deleted(old.id);
  });

  it("is not deleted under deletion protection", async () => {
    const { id } = await fixture.services.create("guarded", { database_type: "valkey", deletion_protection: true });
    const refused = await fixture.platform.rest.delete<ProblemJson>(`/managed-services/${id}`);
    expect(expectStatus(refused, 409).json.code).toBe("deletion_protected");
    expectStatus(await fixture.platform.rest.patch(`/managed-services/${id}`, { deletion_protection: false }), 200);
    await fixture.services.delete(id);
  });
});
