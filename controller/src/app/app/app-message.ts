import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type App,
  type AppDomain,
  type AppDomainCertificate,
  AppDomainSchema,
  AppDomainStatus,
  AppHosting,
  AppSchema,
  AppStatus,
  type Attachment,
  AttachmentSchema,
  AttachmentStatus,
} from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { isFinished, type OperationObject } from "#operation/operation.ts";
import { operationMessage } from "#operation/operation-message.ts";
import type { DeploymentObject } from "../hosting/deployment.ts";
import { isHosted } from "../hosting/hosted-app.ts";
import { appStatuses, hostedMessage, newestFailed } from "../hosting/hosting-message.ts";
import type { AppObject, AttachmentSpec, DomainSpec } from "./app.ts";
import { recordOf } from "./domain-record.ts";

/** Returns true if the state of the service or app is Running. */
export type IsRunning = (serviceId: string) => boolean;

/** Objects that an app's message also shows. */
export interface AppMessageContext {
  readonly isRunning: IsRunning;
  readonly deployment: (id: string) => DeploymentObject | undefined;
  readonly operation: (id: string) => OperationObject | undefined;
  readonly urlOf: (app: AppObject) => string;
  readonly certificateOf: CertificateOfDomain;
}

/** The message of a domain's certificate; undefined without one. */
export type CertificateOfDomain = (appId: string, domain: DomainSpec) => AppDomainCertificate | undefined;

/** The message of an app. An attachment is healthy if its service runs, and what serves has its variables. */
export function appMessage(app: AppObject, context: AppMessageContext): App {
  const { isRunning, deployment, operation, urlOf, certificateOf } = context;
  const { metadata, spec } = app;
  const hosted = isHosted(app) ? app : undefined;
  const desired = hosted && deployment(hosted.spec.hosting.deploymentId);
  const serving = deployment(hosted?.status.hosting.servingId ?? "");
  const failed = hosted && newestFailed(hosted, deployment);
  const inProgress = operation(hosted?.status.hosting.operationId ?? "");
  return create(AppSchema, {
    id: metadata.id,
    name: metadata.name,
    status: hosted === undefined ? AppStatus.RUNNING : appStatuses[hosted.status.hosting.state],
    hosting: hosted === undefined ? AppHosting.EXTERNAL : AppHosting.PLATFORM,
    ...(spec.homeUrl !== null && { homeUrl: spec.homeUrl }),
    attachments: spec.attachments.map((attachment) =>
      attachmentMessage(metadata.id, attachment, (id) => isRunning(id) && !isMissing(attachment, serving, failed)),
    ),
    domains: spec.domains.map((domain) => domainMessage(metadata.id, domain, certificateOf(metadata.id, domain))),
    ...(hosted &&
      desired && { hosted: { ...hostedMessage(hosted, { desired, serving, failed }), url: urlOf(hosted) } }),
    ...(inProgress && !isFinished(inProgress) && { operation: operationMessage(inProgress) }),
    ...(metadata.managedBy && { managedBy: { kind: metadata.managedBy.kind, id: metadata.managedBy.id } }),
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
  });
}

/** True if the deployment of an attachment has failed, so that what serves lacks its variables. */
function isMissing(
  { deploymentNumber = 0 }: AttachmentSpec,
  serving: DeploymentObject | undefined,
  failed: DeploymentObject | undefined,
): boolean {
  return failed !== undefined && (serving?.spec.number ?? 0) < deploymentNumber;
}

/** The message of an attachment; `variables` only in the response of its creation. */
export function attachmentMessage(
  appId: string,
  { id, serviceId, databaseName, app, files, login, prefix }: AttachmentSpec,
  isRunning: IsRunning,
  variables: Readonly<Record<string, string>> = {},
  operation?: OperationObject,
): Attachment {
  return create(AttachmentSchema, {
    id,
    appId,
    kind: app === true ? "app" : files === undefined ? (login?.engine ?? "postgresql") : "files",
    serviceId,
    databaseName,
    status: isRunning(serviceId) ? AttachmentStatus.HEALTHY : AttachmentStatus.UNHEALTHY,
    ...(files && { accessKeyId: files.accessKeyId }),
    ...(prefix !== undefined && { prefix }),
    ...(login && { username: login.username }),
    ...(operation && { operation: operationMessage(operation) }),
    variables: Object.entries(variables).map(([name, value]) => ({ name, value })),
  });
}

export function domainMessage(appId: string, domain: DomainSpec, certificate?: AppDomainCertificate): AppDomain {
  const { id, name, createdAt, verifiedAt } = domain;
  return create(AppDomainSchema, {
    id,
    appId,
    name,
    status: verifiedAt === null ? AppDomainStatus.PENDING : AppDomainStatus.VERIFIED,
    verification: recordOf(domain),
    createdAt: timestampFromMs(createdAt),
    ...(verifiedAt !== null && { verifiedAt: timestampFromMs(verifiedAt) }),
    ...(certificate && { certificate }),
  });
}
