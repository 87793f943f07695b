import { expect, test } from "vitest";
import { newMetadata } from "#kernel/store/resource.ts";
import type { HostedApp } from "./hosted-app.ts";
import type { HostingSpec, HostingStatus } from "./hosting.ts";
import { appHealth } from "./monitored-app.ts";

function app(status: Partial<HostingStatus>, spec: Partial<HostingSpec> = {}): HostedApp {
  return {
    metadata: newMetadata("a", 1, { name: "shop", organizationId: "o" }),
    spec: {
      homeUrl: null,
      attachments: [],
      domains: [],
      hosting: {
        zone: "z",
        planName: "tier-1",
        storageSizeGb: 10,
        storageTier: "standard",
        replicas: 2,
        deploymentId: "d",
        deploymentNumber: 1,
        ...spec,
      },
    },
    status: {
      hosting: {
        state: "Running",
        since: 1,
        operationId: null,
        nodeIds: ["n", "m"],
        readyIds: ["n", "m"],
        isPublished: true,
        servingId: "d",
        failedId: null,
        delivery: null,
        error: null,
        unhealthySince: null,
        ...status,
      },
    },
  };
}

test.each([
  ["healthy", app({})],
  ["degraded", app({ readyIds: ["n"] })],
  ["unhealthy", app({ readyIds: [] })],
  ["unhealthy", app({ unhealthySince: 5 })],
  ["unhealthy", app({ state: "Error", error: "It ended." })],
  ["unknown", app({ state: "Deploying", readyIds: [] })],
  ["unknown", app({ state: "Stopped", readyIds: [] }, { power: "off" })],
])("an app is %s by its state and the machines that serve", (status, object) => {
  expect(appHealth(object).status).toBe(status);
});

test("an app without a healthy machine has the reason of the machine", () => {
  const unhealthyReason = "The program was killed (out of memory) and is started again.";
  expect(appHealth(app({ unhealthySince: 5, unhealthyReason })).reason).toBe(
    `No machine of the app is healthy. ${unhealthyReason}`,
  );
});
