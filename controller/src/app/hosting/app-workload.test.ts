import { randomBytes } from "node:crypto";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { testHostedApp } from "@holdfast/testing/controller/hosted-app.ts";
import { expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { newMetadata } from "#kernel/store/resource.ts";
import { appWorkload } from "./app-workload.ts";
import type { DeploymentObject } from "./deployment.ts";

const organizationId = "0198f2a4-7a11-7d02-8f6c-2b1e5a4c3d90";
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const delivery = { generation: 1, releaseIds: ["d"], servingReleaseId: "d" };
const app = testHostedApp({ delivery });

function variablesWith(environment: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const deployment: DeploymentObject = {
    metadata: newMetadata("d", 1, { organizationId }),
    spec: {
      appId: "shop",
      number: 1,
      settings: {
        imageRef: "shop:1",
        command: [],
        environment,
        sealedEnvironment: "",
        secretNames: [],
        port: 3_000,
        healthCheckPath: "",
        startTimeoutSeconds: 60,
        drainSeconds: 30,
      },
    },
    status: { state: "deploying", digest: `sha256:${"a".repeat(64)}`, reason: "", lastLines: [], finishedAt: null },
  };
  const machine = runningMachine("m", { owner: { kind: "app", id: "shop" }, hostId: "here" }, "10.0.0.1");
  const workload = appWorkload(app, delivery, machine, () => deployment, {
    sealer,
    registry: { address: "registry.test:8452", authorities: () => "" },
    attached: { variablesOf: () => ({ DATABASE_URL: "postgresql://db" }) },
    platformApi: { variablesOf: () => ({ PLATFORM_API_URL: "https://api" }) },
  });
  const { workload: kind } = workload ?? {};
  const release = kind?.case === "app" ? kind.value.releases[0] : undefined;
  return Object.fromEntries(release?.environment.map(({ name, value }) => [name, value]) ?? []);
}

test("a release has its port as PORT, and the variables of its attachments and of the platform's API", () => {
  expect(variablesWith({ A: "$1 'x'\n" })).toEqual({
    PORT: "3000",
    DATABASE_URL: "postgresql://db",
    PLATFORM_API_URL: "https://api",
    A: "$1 'x'\n",
  });
  expect(variablesWith({ PORT: "9000" })).toMatchObject({ PORT: "9000" });
});
