import { create } from "@bufbuild/protobuf";
import type { Call, Handlers } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { ListEngineDatabasesSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { AppService, CreateAttachmentRequest } from "@holdfast/proto/holdfast/v1/app_pb.ts";
import { FilesAccess } from "@holdfast/proto/holdfast/v1/files_pb.ts";
import { requireScope } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf, nextMetadata, type Stored } from "#kernel/store/resource.ts";
import type { Changes, UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { OperationObject } from "#operation/operation.ts";
import { addLogin, endLogin } from "#services/contents/user/attached-login.ts";
import { databaseUserId, type DatabaseUserObject } from "#services/contents/user/database-user.ts";
import { engineProfileOf } from "#services/engine/engine-profiles.ts";
import { publicFilesOutputs } from "#services/files/files-connection.ts";
import { type FilesKeyChanges, type FilesKeyPair, keyOfConsumer } from "#services/files/files-key-changes.ts";
import { filesVariables, prefixOf } from "#services/resource-kind/environment-of.ts";
import { managedServiceKind, type ManagedServiceObject } from "#services/service/managed-service.ts";
import type { EngineTasks } from "#services/service/engine-task.ts";
import type { ServiceAccess } from "#services/service/service-access.ts";
import { attachService, type ServiceConsumers } from "#services/service/service-consumers.ts";
import type { AttachedServices } from "../hosting/attached-services.ts";
import { isHosted } from "../hosting/hosted-app.ts";
import type { HostingCommands } from "../hosting/hosting-commands.ts";
import { type AppObject, type AttachmentSpec, appKind, attachmentsMax } from "./app.ts";
import type { AppAccess } from "./app-access.ts";
import { attachApp } from "./app-attachments.ts";
import { attachmentMessage, type IsRunning } from "./app-message.ts";

export interface AttachmentsDeps {
  readonly begin: () => UnitOfWork;
  readonly access: AppAccess;
  readonly apps: Pick<Collection<AppObject>, "untilRevision">;
  readonly services: Pick<Collection<ManagedServiceObject>, "get" | "untilRevision">;
  readonly users: Pick<Collection<DatabaseUserObject>, "get" | "untilRevision">;
  /** Finds databases. */
  readonly serviceAccess: ServiceAccess;
  /** Finds files services. */
  readonly filesAccess: ServiceAccess;
  readonly keys: FilesKeyChanges;
  readonly hosting: Pick<HostingCommands, "redeployed" | "visibleIn" | "portOf">;
  readonly attached: Pick<AttachedServices, "prefixesOf">;
  readonly tasks: EngineTasks;
  readonly sealer: Sealer;
  readonly isRunning: IsRunning;
  /** True if the app's end users are in the database of the attachment. */
  readonly isInUse: (appId: string, attachmentId: string) => boolean;
  readonly clock: Clock;
  readonly newId: () => string;
}

/**
 * Ends what belongs to an attachment, the key of a files service or the user of a database, in the unit of work that
 * removes it.
 */
export async function endAttachment(
  unit: Changes,
  { id, serviceId, files, login }: AttachmentSpec,
  {
    services,
    users,
    keys,
    clock,
  }: Pick<AttachmentsDeps, "keys" | "clock"> & {
    readonly services: Pick<AttachmentsDeps["services"], "get">;
    readonly users: Pick<AttachmentsDeps["users"], "get">;
  },
): Promise<void> {
  if (files === undefined && login === undefined) return;
  const service = services.get(serviceId);
  if (service === undefined || service.object.metadata.deletionRequestedAt !== undefined) {
    // An undelete creates no key of an attachment that has ended: it may not be concurrent.
    unit.onlyWhile({ key: keyOf(managedServiceKind, serviceId), modRevision: service?.modRevision ?? 0n });
    return;
  }
  if (login !== undefined) {
    const user = users.get(databaseUserId(serviceId, login.username));
    if (user !== undefined) endLogin(unit, user, clock.now());
    return;
  }
  const key = keyOfConsumer(await keys.keysOf(service), id);
  if (key !== undefined) keys.remove(unit, service, key);
}

/** Maximum number of names in the detail of a refusal. */
const listedMax = 10;

/** An attachment that a unit of work adds, with the variables that its response shows. */
interface NewAttachment {
  readonly attachment: AttachmentSpec;
  readonly variables: Readonly<Record<string, string>>;
}

/**
 * Attachments of apps. An attached files service has a separate key for the app, which is created and ends in the
 * transaction that attaches and detaches it, and so has a database a user for a hosted app. Each change of a hosted
 * app's attachments is a deployment, by which its program gets other variables.
 */
export function attachmentHandlers(
  deps: AttachmentsDeps,
): Pick<Handlers<typeof AppService>, "createAttachment" | "deleteAttachment"> {
  const { access, services, keys, isRunning } = deps;
  const kind = appKind.name;
  const visibleIn = [deps.apps, deps.services, deps.users, ...deps.hosting.visibleIn];

  function requireNew({ spec }: AppObject, { serviceId, databaseName }: AttachmentSpec): void {
    if (spec.attachments.length >= attachmentsMax)
      throw new HoldfastError("WRONG_STATE", `The app has ${attachmentsMax} attachments already.`);
    if (!spec.attachments.some((each) => each.serviceId === serviceId && each.databaseName === databaseName)) return;
    const what = databaseName === "" ? "The files service or app" : `The database ${databaseName} of the service`;
    throw new HoldfastError("NAME_TAKEN", `${what} is attached already.`);
  }

  /**
   * Prefix of a hosted app's variables for a new attachment; undefined for other apps. Throws INVALID_REQUEST if
   * another attachment has it.
   */
  function prefixFor(
    app: AppObject,
    request: CreateAttachmentRequest,
    { metadata }: Pick<AppObject, "metadata">,
  ): string | undefined {
    if (!isHosted(app)) {
      if (request.prefix === undefined) return undefined;
      throw invalid({
        field: "prefix",
        code: "invalid_value",
        detail: "is only for an app with an image_ref; omit it",
      });
    }
    const prefix = request.prefix ?? prefixOf(metadata.name);
    if (!deps.attached.prefixesOf(app).includes(prefix)) return prefix;
    const detail = `another attachment has the prefix ${prefix}; choose one, such as ${prefix}_2`;
    throw invalid({ field: "prefix", code: "prefix_collision", detail });
  }

  /** Throws DATABASE_NOT_FOUND for a name that the engine does not have. */
  async function requireDatabase(serviceId: string, name: string, call: Call): Promise<void> {
    const { object } = deps.serviceAccess.requireRunning(serviceId, call);
    const value = create(ListEngineDatabasesSchema);
    const { databases } = await deps.tasks.run(object, { case: "listEngineDatabases", value }, call.signal);
    if (databases.some((database) => database.name === name)) return;
    const names = databases.map((database) => database.name).toSorted();
    const listed = names.slice(0, listedMax).join(", ");
    const has = names.length === 0 ? "no database" : `${listed}${names.length > listedMax ? " and others" : ""}`;
    const service = object.metadata.name;
    throw new HoldfastError("DATABASE_NOT_FOUND", `The service ${service} has no database ${name}. It has ${has}.`);
  }

  async function databaseAttachment(
    unit: Changes,
    request: CreateAttachmentRequest,
    call: Call,
    app: AppObject,
  ): Promise<NewAttachment> {
    const { serviceId } = request;
    const service = deps.serviceAccess.require(serviceId, call);
    const { databaseType } = service.object.spec;
    if (databaseType !== "postgresql" && !isHosted(app))
      throw new HoldfastError(
        "ATTACHMENT_NOT_POSTGRESQL",
        `${databaseType} cannot store users of apps; attach a PostgreSQL service.`,
      );
    if (request.access !== undefined)
      throw invalid({ field: "access", code: "invalid_value", detail: "is only for a files service; omit it" });
    const id = deps.newId();
    const { connectionDatabase, hasDatabaseUrl } = engineProfileOf(databaseType);
    if (request.databaseName !== undefined && hasDatabaseUrl !== true)
      throw invalid({ field: "database_name", code: "invalid_value", detail: `is not for ${databaseType}; omit it` });
    const { databaseName = connectionDatabase } = request;
    requireNew(app, { id, serviceId, databaseName });
    const prefix = prefixFor(app, request, service.object);
    if (databaseName !== connectionDatabase) await requireDatabase(serviceId, databaseName, call);
    attachService(unit, service);
    if (prefix === undefined) return { attachment: { id, serviceId, databaseName }, variables: {} };
    requireScope(call, "services:write");
    const owner = { id, appName: app.metadata.name };
    const username = addLogin(unit, service.object, owner, { sealer: deps.sealer, now: deps.clock.now() });
    const login = { engine: databaseType, username };
    return { attachment: { id, serviceId, databaseName, login, prefix }, variables: {} };
  }

  function appAttachment(
    unit: Changes,
    request: CreateAttachmentRequest,
    app: AppObject,
    target: Stored<AppObject>,
  ): NewAttachment {
    attachApp(unit, request, app, target, deps.hosting.portOf);
    const attachment = { id: deps.newId(), serviceId: request.serviceId, databaseName: "" };
    requireNew(app, attachment);
    const prefix = prefixFor(app, request, target.object);
    return { attachment: { ...attachment, app: true, ...(prefix !== undefined && { prefix }) }, variables: {} };
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
    const prefix = prefixFor(app, request, service.object);
    const pair = await keys.add(unit, service, {
      name: `${app.metadata.name}-${id.slice(-8)}`,
      access: request.access === FilesAccess.READONLY ? "readonly" : "readwrite",
      consumerId: id,
    });
    const files = { accessKeyId: pair.key.spec.username };
    const attachment = { id, serviceId, databaseName: "", files };
    // The deployment gives a hosted app its variables, with other names and private endpoints.
    if (prefix !== undefined) return { attachment: { ...attachment, prefix }, variables: {} };
    const others = await Promise.all(app.spec.attachments.map(attachedFiles));
    const attached = [...others.flatMap((each) => each ?? []), { service: service.object, pair }];
    return {
      attachment,
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

  /** Changes the attachments in the unit of work. Returns the operation of a hosted app's deployment. */
  async function replace(
    unit: Changes,
    app: Stored<AppObject>,
    attachments: readonly AttachmentSpec[],
    signal: AbortSignal,
  ): Promise<OperationObject | undefined> {
    const after = { ...app.object, spec: { ...app.object.spec, attachments } };
    if (!isHosted(after)) {
      unit.update(appKind, app, { ...after, metadata: nextMetadata(after.metadata, deps.clock.now()) });
      return undefined;
    }
    const deployed = await deps.hosting.redeployed(unit, after, signal);
    unit.update(appKind, app, deployed.app);
    return deployed.operation(deployed.app.status.hosting?.operationId ?? "");
  }

  return {
    createAttachment: (request, call) =>
      mutate(deps, call, { action: "app.attach", kind, visibleIn }, async (unit) => {
        const { appId, serviceId } = request;
        const app = await access.getCurrent(appId, call);
        const files = deps.filesAccess.find(serviceId, call);
        const target = access.find(serviceId, call) && (await access.getCurrent(serviceId, call));
        const { attachment, variables } =
          target !== undefined
            ? appAttachment(unit, request, app.object, target)
            : files === undefined
              ? await databaseAttachment(unit, request, call, app.object)
              : await filesAttachment(unit, request, call, app.object, files);
        const { hosting } = app.object.spec;
        const added = { ...attachment, ...(hosting && { deploymentNumber: hosting.deploymentNumber + 1 }) };
        const attachments = [...app.object.spec.attachments, added];
        const operation = await replace(unit, app, attachments, call.signal);
        return { id: appId, response: attachmentMessage(appId, attachment, isRunning, variables, operation) };
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
        const remaining = attachments.filter(({ id }) => id !== attachmentId);
        await replace(unit, app, remaining, call.signal);
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
            ...(metadata.managedBy && { managedBy: metadata.managedBy }),
            key: keyOf(appKind, metadata.id),
            modRevision: apps.get(metadata.id)?.modRevision ?? 0n,
          })),
      ),
  };
}
