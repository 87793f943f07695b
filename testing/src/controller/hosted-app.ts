import type { HostedApp } from "@holdfast/controller/app/hosting/hosted-app.ts";
import { newMetadata } from "@holdfast/controller/kernel/store/resource.ts";

/** A hosted app of one replica that is running, with the state of its hosting changed. */
export function testHostedApp(state: Partial<HostedApp["status"]["hosting"]> = {}): HostedApp {
  return {
    metadata: newMetadata("shop", 1, { name: "shop", organizationId: "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90" }),
    spec: {
      homeUrl: null,
      attachments: [],
      domains: [],
      hosting: {
        zone: "local",
        planName: "tier-1",
        storageSizeGb: 10,
        storageTier: "standard",
        replicas: 1,
        deploymentId: "d",
        deploymentNumber: 1,
      },
    },
    status: {
      hosting: {
        state: "Running",
        since: 1,
        operationId: null,
        nodeIds: ["m"],
        readyIds: [],
        isPublished: true,
        servingId: null,
        failedId: null,
        delivery: null,
        error: null,
        unhealthySince: null,
        ...state,
      },
    },
  };
}
