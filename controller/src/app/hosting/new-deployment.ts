import { next } from "@holdfast/common/machine.ts";
import { newMetadata, nextMetadata } from "#kernel/store/resource.ts";
import { newOperation, type OperationDefinition } from "#operation/operation-definition.ts";
import type { OperationObject } from "#operation/operation.ts";
import { type AppObject, appKind } from "../app/app.ts";
import { type DeploymentObject, newDeploymentStatus, type ReleaseSettings } from "./deployment.ts";
import type { HostedApp } from "./hosted-app.ts";
import { hostingLifecycle } from "./hosting-lifecycle.ts";
import type { HostingSize } from "./hosting-request.ts";

interface NewDeployment {
  readonly deploymentId: string;
  readonly operationId: string;
  readonly type: OperationDefinition;
  readonly settings: ReleaseSettings;
  /** Digest of the image, of a deployment that repeats an earlier one; null for others. */
  readonly digest: string | null;
  readonly now: number;
}

interface Deploying {
  readonly app: HostedApp;
  readonly deployment: DeploymentObject;
  readonly operation: OperationObject;
}

/** A new hosted app, with its first deployment and the operation that ends once the app serves. */
export function newHosting(app: AppObject, size: HostingSize, first: NewDeployment): Deploying {
  const { deploymentId, operationId, now } = first;
  const hosting = { ...size, deploymentId, deploymentNumber: 1 };
  const hosted: HostedApp = {
    ...app,
    spec: { ...app.spec, hosting },
    status: {
      hosting: {
        state: "Pending",
        since: now,
        operationId,
        nodeIds: [],
        readyIds: [],
        isPublished: false,
        servingId: null,
        failedId: null,
        delivery: null,
        error: null,
        unhealthySince: null,
      },
    },
  };
  return { app: hosted, ...deploymentOf(hosted, first) };
}

/** The app with another deployment to run, and the operation that ends once all of its machines serve it. */
export function withDeployment(app: HostedApp, deployment: NewDeployment): Deploying {
  const { deploymentId, operationId, now } = deployment;
  const { hosting } = app.status;
  const [, , state = hosting.state] = next(hostingLifecycle, hosting.state, "deploymentStarted") ?? [];
  const deploymentNumber = app.spec.hosting.deploymentNumber + 1;
  const after: HostedApp = {
    ...app,
    metadata: nextMetadata(app.metadata, now),
    spec: { ...app.spec, hosting: { ...app.spec.hosting, deploymentId, deploymentNumber } },
    status: {
      hosting: {
        ...hosting,
        operationId,
        state,
        since: state === hosting.state ? hosting.since : now,
        error: state === "Error" ? hosting.error : null,
      },
    },
  };
  return { app: after, ...deploymentOf(after, deployment) };
}

function deploymentOf(
  { metadata: { id: appId, name, organizationId }, spec }: HostedApp,
  { deploymentId, operationId, type, settings, digest, now }: NewDeployment,
): Omit<Deploying, "app"> {
  return {
    deployment: {
      metadata: newMetadata(deploymentId, now, { name, organizationId }),
      spec: { appId, number: spec.hosting.deploymentNumber, settings },
      status: newDeploymentStatus(digest),
    },
    operation: newOperation({ id: operationId, subject: { kind: appKind.name, id: appId }, organizationId, type, now }),
  };
}
