import { AttachmentStatus } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { testHostedApp } from "@holdfast/testing/controller/hosted-app.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import type { DeploymentObject } from "../hosting/deployment.ts";
import { appMessage } from "./app-message.ts";

const settings = partial<DeploymentObject["spec"]["settings"]>({
  imageRef: "shop:1",
  command: [],
  environment: {},
  secretNames: [],
  healthCheckPath: "",
});

function deployment(id: string, number: number, state: DeploymentObject["status"]["state"]) {
  return partial<DeploymentObject>({
    metadata: partial({ id }),
    spec: { appId: "shop", number, settings },
    status: { state, digest: null, reason: "", lastLines: [], finishedAt: null },
  });
}

/** Statuses of an attachment of deployment 1, and of one of deployment 2, of an app that serves this deployment. */
function statuses(serving: DeploymentObject, newest: DeploymentObject, isRunning = true) {
  const app = testHostedApp({ servingId: serving.metadata.id, failedId: newest.metadata.id });
  const attachments = [1, 2].map((number) => ({
    id: `a${number}`,
    serviceId: "orders",
    databaseName: "app",
    deploymentNumber: number,
  }));
  const hosting = { ...app.spec.hosting, deploymentId: serving.metadata.id, deploymentNumber: newest.spec.number };
  const all = [serving, newest];
  const message = appMessage(
    { ...app, spec: { ...app.spec, attachments, hosting } },
    {
      isRunning: () => isRunning,
      deployment: (id) => all.find(({ metadata }) => metadata.id === id),
      operation: () => undefined,
      urlOf: () => "",
      certificateOf: () => undefined,
    },
  );
  return message.attachments.map(({ status }) => (status === AttachmentStatus.HEALTHY ? "HEALTHY" : "UNHEALTHY"));
}

test("an attachment whose deployment failed is unhealthy, until a deployment with it serves", () => {
  const [first, failed, third] = [
    deployment("d1", 1, "succeeded"),
    deployment("d2", 2, "failed"),
    deployment("d3", 3, "succeeded"),
  ] as const;
  expect(statuses(first, failed)).toEqual(["HEALTHY", "UNHEALTHY"]);
  expect(statuses(first, deployment("d2", 2, "deploying"))).toEqual(["HEALTHY", "HEALTHY"]);
  expect(statuses(third, third)).toEqual(["HEALTHY", "HEALTHY"]);
  expect(statuses(third, deployment("d4", 4, "failed"))).toEqual(["HEALTHY", "HEALTHY"]);
  expect(statuses(third, third, false)).toEqual(["UNHEALTHY", "UNHEALTHY"]);
});
