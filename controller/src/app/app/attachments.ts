import type { Call, Handlers } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { AppService, CreateAttachmentRequest } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { FilesAccess } from "@holdfast/proto/holdfast/v1/files_pb.ts";
import { requireScope } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import { keyOf, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { Changes, UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { DatabaseUserObject } from "#services/contents/user/database-user.ts";
import { publicFilesOutputs } from "#services/files/files-connection.ts";
import { type FilesKeyChanges, type FilesKeyPair, keyOfConsumer } from "#services/files/files-key-changes.ts";
import { filesVariables, prefixOf } from "#services/resource-kind/environment-of.ts";
import { managedServiceKind, type ManagedServiceObject } from "#services/service/managed-service.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import { attachService, type ServiceConsumers } from "#services/service/service-consumers.ts";
import { type AppObject, type AttachmentSpec, appKind, attachmentsMax } from "./app.ts";
import type { AppAccess } from "./app-access.ts";
import { attachmentMessage, type IsRunning } from "./app-message.ts";

export interface AttachmentsDeps {
  readonly begin: () => UnitOfWork;
  readonly access: AppAccess;
  readonly apps: Pick<Collection<AppObject>, "untilRevision">;
  readonly services: Pick<Collection<ManagedServiceObject>, "get" | "untilRevision">;
  readonly users: Pick<Collection<DatabaseUserObject>, "untilRevision">;
  /** Finds databases. */
  readonly serviceAccess: ServiceAccess;
  /** Finds files services. */
  readonly filesAccess: ServiceAccess;
  readonly keys: FilesKeyChanges;
  readonly isRunning: IsRunning;
  /** True if the app's end users are in the database of the attachment. */
  readonly isInUse: (appId: string, attachmentId: string) => boolean;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Ends what belongs to an attachment, the key of a files service, in the unit of work that removes it. */
export async function endAttachment(
  unit: Changes,
  { id, serviceId, files }: AttachmentSpec,
  { services, keys }: Pick<AttachmentsDeps, "keys"> & { readonly services: Pick<AttachmentsDeps["services"], "get"> },
): Promise<void> {
  if (files === undefined) return;
  const service = services.get(serviceId);
  if (service === undefined || service.object.metadata.deletionRequestedAt !== undefined) {
    // An undelete creates no key of an attachment that has ended: it may not be concurrent.
    unit.onlyWhile({ key: keyOf(managedServiceKind, serviceId), modRevision: service?.modRevision ?? 0n });
    return;
  }
  const key = keyOfConsumer(await keys.keysOf(service), id);
  if (key !== undefined) keys.remove(unit, service, key);
}

/** An attachment that a unit of work adds, with the variables that its response shows. */
interface NewAttachment {
  readonly attachment: AttachmentSpec;
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * Attachments of apps. An attached files service has a separate key for the app, which is created and ends in the
 * transaction that attaches and detaches it.
 */
export function attachmentHandlers(
  deps: AttachmentsDeps,
): Pick<Handlers<typeof AppService>, "createAttachment" | "deleteAttachment"> {
  const { access, services, keys, isRunning } = deps;
  const kind = appKind.name;
  const visibleIn = [deps.apps, deps.services, deps.users];

  function requireNew({ spec }: AppObject, { serviceId, databaseName }: AttachmentSpec): void {
    if (spec.attachments.length >= attachmentsMax)
      throw new HoldfastError("WRONG_STATE", `The app has ${attachmentsMax} attachments already.`);
    if (!spec.attachments.some((each) => each.serviceId === serviceId && each.databaseName === databaseName)) return;
    const what = databaseName === "" ? "The files service" : `The database ${databaseName} of the service`;
    throw new HoldfastError("NAME_TAKEN", `${what} is attached already.`);
  }

  function databaseAttachment(
    unit: Changes,
    request: CreateAttachmentRequest,
    call: Call,
    app: AppObject,
  ): NewAttachment {
    const { serviceId, databaseName = defaultDatabase } = request;
    const service = deps.serviceAccess.require(serviceId, call);
    const { databaseType } = service.object.spec;
    if (databaseType !== "postgresql")
      throw new HoldfastError(
        "ATTACHMENT_NOT_POSTGRESQL",
        `${databaseType} cannot store users of apps; attach a PostgreSQL service.`,
      );
    if (request.access !== undefined)
      throw invalid({ field: "access", code: "invalid_value", detail: "is only for a files service; omit it" });
    const attachment = { id: deps.newId(), serviceId, databaseName };
    requireNew(app, attachment);
    attachService(unit, service);
    return { attachment, variables: {} };
  }

  async function filesAttachment(
    unit: Changes,
    request: CreateAttachmentRequest,
    call: Call,
    app: AppObject,
    service: Stored<ManagedServiceObject>,
  ): Promise<NewAttachment> {
    requireScope(call, "files:write");
    if (request.databaseName !== undefined)
      throw invalid({ field: "database_name", code: "invalid_value", detail: "is only for a database; omit it" });
    const id = deps.newId();
    const { serviceId } = request;
    requireNew(app, { id, serviceId, databaseName: "" });
    const pair = await keys.add(unit, service, {
      name: `${app.metadata.name}-${id.slice(-8)}`,
      access: request.access === FilesAccess.READONLY ? "readonly" : "readwrite",
      consumerId: id,
    });
    const others = await Promise.all(app.spec.attachments.map(attachedFiles));
    const attached = [...others.flatMap((each) => each ?? []), { service: service.object, pair }];
    return {
      attachment: { id, serviceId, databaseName: "", files: { accessKeyId: pair.key.spec.username } },
      variables: filesVariables(
        attached.map((each) => ({
          prefix: prefixOf(each.service.metadata.name),
          outputs: publicFilesOutputs(each.service.spec, each.pair),
        })),
      ),
    };
  }

  /** An attached files service with the attachment's key; undefined for a database, or if one of them was deleted. */
  async function attachedFiles({
    id,
    serviceId,
    files,
  }: AttachmentSpec): Promise<{ readonly service: ManagedServiceObject; readonly pair: FilesKeyPair } | undefined> {
    const service = services.get(serviceId);
    if (files === undefined || service === undefined) return undefined;
    const key = keyOfConsumer(await keys.keysOf(service), id);
    return key && { service: service.object, pair: { key, secret: keys.secretOf(key) } };
  }

  function replace(unit: Changes, app: Stored<AppObject>, attachments: readonly AttachmentSpec[]): void {
    const { metadata, spec } = app.object;
    const after = { ...app.object, metadata: nextMetadata(metadata, deps.clock.now()), spec: { ...spec, attachments } };
    unit.update(appKind, app, after);
  }

  return {
    createAttachment: (request, call) =>
      mutate(deps, call, { action: "app.attach", kind, visibleIn }, async (unit) => {
        const { appId, serviceId } = request;
        const app = await access.getCurrent(appId, call);
        const files = deps.filesAccess.find(serviceId, call);
        const { attachment, variables } =
          files === undefined
            ? databaseAttachment(unit, request, call, app.object)
            : await filesAttachment(unit, request, call, app.object, files);
        replace(unit, app, [...app.object.spec.attachments, attachment]);
        return { id: appId, response: attachmentMessage(appId, attachment, isRunning, variables) };
      }),

    deleteAttachment: ({ appId, attachmentId }, call) =>
      mutate(deps, call, { action: "app.detach", kind, visibleIn }, async (unit) => {
        const app = await access.getCurrent(appId, call);
        const { attachments } = app.object.spec;
        const removed = attachments.find(({ id }) => id === attachmentId);
        if (removed === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "The app has no such attachment.");
        if (deps.isInUse(appId, attachmentId))
          throw new HoldfastError(
            "ATTACHMENT_IN_USE",
            "The app's users are in this database. Disable its sign-in first.",
          );
        await endAttachment(unit, removed, deps);
        replace(
          unit,
          app,
          attachments.filter(({ id }) => id !== attachmentId),
        );
        return { id: appId, result: {} };
      }),
  };
}

/** The attachments of apps, for services that cannot be deleted while they are attached. */
export function attachedApps(apps: Pick<Collection<AppObject>, "page" | "get" | "untilRevision">): ServiceConsumers {
  return {
    kind: appKind.name,
    memory: apps,
    of: (organizationId, serviceId) =>
      ofOrganization(apps, organizationId).flatMap(({ metadata, spec }) =>
        spec.attachments
          .filter((attachment) => attachment.serviceId === serviceId)
          .map(({ id, databaseName }) => ({
            attachmentId: id,
            database: databaseName,
            text: `app ${metadata.name}`,
            key: keyOf(appKind, metadata.id),
            modRevision: apps.get(metadata.id)?.modRevision ?? 0n,
          })),
      ),
  };
}
