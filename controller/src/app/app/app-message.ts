import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type App,
  type AppDomain,
  AppDomainSchema,
  AppDomainStatus,
  AppHosting,
  AppSchema,
  AppStatus,
  type Attachment,
  AttachmentSchema,
  AttachmentStatus,
} from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { AppObject, AttachmentSpec, DomainSpec } from "./app.ts";
import { recordOf } from "./domain-record.ts";

/** Returns true if the state of the service is Running. */
export type IsRunning = (serviceId: string) => boolean;

/** The message of an app; the status of an attachment is that its service runs. */
export function appMessage({ metadata, spec }: AppObject, isRunning: IsRunning): App {
  return create(AppSchema, {
    id: metadata.id,
    name: metadata.name,
    status: AppStatus.RUNNING,
    hosting: AppHosting.EXTERNAL,
    ...(spec.homeUrl !== null && { homeUrl: spec.homeUrl }),
    attachments: spec.attachments.map((attachment) => attachmentMessage(metadata.id, attachment, isRunning)),
    domains: spec.domains.map((domain) => domainMessage(metadata.id, domain)),
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
  });
}

export function attachmentMessage(
  appId: string,
  { id, serviceId, databaseName }: AttachmentSpec,
  isRunning: IsRunning,
): Attachment {
  const status = isRunning(serviceId) ? AttachmentStatus.HEALTHY : AttachmentStatus.UNHEALTHY;
  return create(AttachmentSchema, { id, appId, kind: "postgresql", serviceId, databaseName, status });
}

export function domainMessage(appId: string, domain: DomainSpec): AppDomain {
  const { id, name, createdAt, verifiedAt } = domain;
  return create(AppDomainSchema, {
    id,
    appId,
    name,
    status: verifiedAt === null ? AppDomainStatus.PENDING : AppDomainStatus.VERIFIED,
    verification: recordOf(domain),
    createdAt: timestampFromMs(createdAt),
    ...(verifiedAt !== null && { verifiedAt: timestampFromMs(verifiedAt) }),
  });
}
