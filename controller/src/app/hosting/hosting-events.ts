import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { appKind } from "../app/app.ts";
import type { HostedApp } from "./hosted-app.ts";

const data = {
  app_id: { type: "uuid", meaning: "id of the app" },
  app_name: { type: "string", meaning: "name of the app" },
  status: { type: "string", meaning: "status of the app after the event" },
} as const satisfies EventDefinition["data"];

const deploymentData = {
  ...data,
  deployment_id: { type: "uuid", meaning: "id of the deployment" },
  image_ref: { type: "string", meaning: "the image as it was requested" },
} as const satisfies EventDefinition["data"];

const example = { app_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10", app_name: "shop", status: "Running" };
const deploymentExample = {
  ...example,
  deployment_id: "0198f2a4-8f31-7c02-9d4e-6a1b7c3d5e80",
  image_ref: "shop:2",
};
const reasonData = { reason: { type: "string", meaning: "the reason" } } as const satisfies EventDefinition["data"];
const reason = "The program ended before it was ready, with the exit code 1.";

/** Events of hosted apps. */
export const hostingEventDefinitions = {
  "app.deployed": {
    when: "a deployment serves on all machines of an app",
    data: deploymentData,
    example: deploymentExample,
  },
  "app.deploy_failed": {
    when: "a deployment failed; the one before serves on",
    data: { ...deploymentData, ...reasonData },
    example: { ...deploymentExample, reason },
  },
  "app.failed": {
    when: "an app enters the status Error: its first deployment failed, or no machine has been healthy for a minute",
    data: { ...data, ...reasonData },
    example: { ...example, status: "Error", reason },
  },
  "app.health_changed": {
    when: "an app's health has a new status",
    data: {
      ...data,
      from: { type: "string", meaning: "`healthy`, `degraded`, `unhealthy` or `unknown`: the status before" },
      to: { type: "string", meaning: "the new status" },
      ...reasonData,
    },
    example: { ...example, from: "healthy", to: "degraded", reason: "1 of 2 machines serve." },
  },
  "app.stopped": {
    when: "an app was stopped by a request",
    data,
    example: { ...example, status: "Stopped" },
  },
} as const satisfies Record<string, EventDefinition>;

export function hostingEvent(
  type: keyof typeof hostingEventDefinitions,
  { metadata, status }: HostedApp,
  more: Readonly<Record<string, string>>,
): NewEvent {
  return {
    type,
    organizationId: metadata.organizationId,
    objectKind: appKind.name,
    objectId: metadata.id,
    data: { app_id: metadata.id, app_name: metadata.name, status: status.hosting.state, ...more },
  };
}
