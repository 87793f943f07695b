import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type App,
  AppHosting,
  AppSchema,
  AppStatus,
  type Attachment,
  AttachmentSchema,
  AttachmentStatus,
} from "@holdfast/proto/holdfast/v1/app_pb.ts";
import type { AppObject, AttachmentSpec } from "./app.ts";

/** Says whether a service runs. */
export type IsRunning = (serviceId: string) => boolean;

/** An app as the API shows it. */
export function appMessage({ metadata, spec }: AppObject, isRunning: IsRunning): App {
  return create(AppSchema, {
    id: metadata.id,
    name: metadata.name,
    status: AppStatus.RUNNING,
    hosting: AppHosting.EXTERNAL,
    ...(spec.homeUrl !== null && { homeUrl: spec.homeUrl }),
    attachments: spec.attachments.map((attachment) => attachmentMessage(metadata.id, attachment, isRunning)),
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
