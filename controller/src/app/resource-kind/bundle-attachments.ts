import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { AttachedResource } from "#resource-kind/resource-kind.ts";
import { addLogin } from "#services/contents/user/attached-login.ts";
import { engineProfileOf } from "#services/engine/engine-profiles.ts";
import type { FilesKeyChanges } from "#services/files/files-key-changes.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { attachService } from "#services/service/service-consumers.ts";
import { type AppObject, type AttachmentSpec, appKind } from "../app/app.ts";

export interface BundleAttachmentsDeps {
  readonly apps: Pick<Collection<AppObject>, "getCurrent">;
  readonly services: Pick<Collection<ManagedServiceObject>, "getCurrent">;
  readonly keys: Pick<FilesKeyChanges, "add">;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly newId: () => string;
}

/**
 * Attaches a resource of a bundle to an app of the same bundle, with a user or a key for the app. The caller gives the
 * app the attachment by the same unit of work. Throws NOT_POSSIBLE if the resource is absent.
 */
export type AttachResource = (
  unit: Changes,
  app: Pick<AppObject, "metadata">,
  resource: AttachedResource,
  signal: AbortSignal,
) => Promise<AttachmentSpec>;

export function createBundleAttachments(deps: BundleAttachmentsDeps): AttachResource {
  const { apps, services, keys, sealer, clock, newId } = deps;
  return async (unit, { metadata: { name: appName } }, { kind, id: serviceId, prefix }, signal) => {
    const id = newId();
    if (kind === appKind.name) {
      const target = await apps.getCurrent(serviceId, signal);
      if (target === undefined) throw new HoldfastError("NOT_POSSIBLE", "The attached app is absent.");
      // A concurrent deletion of it conflicts.
      unit.update(appKind, target, target.object);
      return { id, serviceId, databaseName: "", app: true, prefix };
    }
    const service = await services.getCurrent(serviceId, signal);
    if (service === undefined) throw new HoldfastError("NOT_POSSIBLE", "The attached service is absent.");
    const { databaseType: engine } = service.object.spec;
    if (engine === "files") {
      const name = `${appName}-${id.slice(-8)}`;
      const { key } = await keys.add(unit, service, { name, access: "readwrite", consumerId: id });
      return { id, serviceId, databaseName: "", files: { accessKeyId: key.spec.username }, prefix };
    }
    attachService(unit, service);
    const username = addLogin(unit, service.object, { id, appName }, { sealer, now: clock.now() });
    return {
      id,
      serviceId,
      databaseName: engineProfileOf(engine).connectionDatabase,
      login: { engine, username },
      prefix,
    };
  };
}
