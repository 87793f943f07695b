import type { Clock } from "@holdfast/common/clock.ts";
import {
  descriptorObject,
  descriptorsPrefix,
  keysPrefix,
  logKeysPrefix,
} from "@holdfast/common/backup/object-names.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { Organization } from "#access/organization/organization.ts";
import { again, type Outcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Keyring } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { whenChanged } from "#kernel/store/when-changed.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type DatabaseUserObject, usersOfService } from "../contents/user/database-user.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ArchiveObject, LogKey } from "./archive.ts";
import type { BackupIndex } from "./backup-index.ts";
import type { BackupKeyObject } from "./backup-key.ts";
import type { BackupObject } from "./backup.ts";
import { descriptionKind, type DescriptionObject, newDescription } from "./description.ts";
import { descriptorOf, digestOf, sealDescriptor, type ServiceDescriptor } from "./service-descriptor.ts";
import { storeLogKey } from "./stored-key.ts";
import { deleteBelow } from "./stored-prefix.ts";

export interface DescriptionWorkDeps {
  readonly descriptions: Collection<DescriptionObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly users: Collection<DatabaseUserObject>;
  readonly archives: Collection<ArchiveObject>;
  readonly backups: Collection<BackupObject>;
  readonly backupKeys: Collection<BackupKeyObject>;
  readonly organizations: Collection<Organization>;
  readonly index: BackupIndex;
  readonly objects: ObjectStore;
  readonly keyring: Keyring;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/** The newest one and what it replaced: one that is being written is never the only one. */
const keptDescriptors = 3;
const describedWithinMs = 3_000;

/**
 * Keeps beside each service's backups what brings the service back out of the store alone: a new descriptor whenever the service,
 * its users, its backups or its archive changed. Key: service id.
 */
export function createDescriptionWork(deps: DescriptionWorkDeps): ControlLoop {
  const { descriptions, services, users, archives, backups, index, objects, clock } = deps;
  const describe = describing(deps);

  async function reconcile(id: string, signal: AbortSignal): Promise<Outcome> {
    const stored = descriptions.get(id);
    const archive = archives.get(id) ?? (await archives.fresh(id, signal));
    if (archive === undefined) return stored === undefined ? settled : forget(stored, signal);
    if (stored === undefined) {
      const unit = deps.begin();
      unit.create(descriptionKind, newDescription(id, archive.object.metadata.organizationId, clock.now()));
      await descriptions.reached(await unit.commit(signal), 1_000);
      return again(0, "description made");
    }
    const descriptor = describe(archive.object);
    const digest = digestOf(descriptor);
    return digest === stored.object.status.digest ? settled : write(stored, descriptor, digest, signal);
  }

  /** The number is taken in etcd first: whoever was interrupted takes the next one. */
  async function write(
    { object, modRevision }: Stored<DescriptionObject>,
    descriptor: ServiceDescriptor,
    digest: string,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { id } = object.metadata;
    const number = object.status.number + 1;
    const term = Math.max(object.status.term, termOf(descriptor));
    const begun = { ...object, status: { ...object.status, number, term } };
    const taking = deps.begin();
    taking.update(descriptionKind, { object, modRevision }, begun);
    const taken = await taking.commit(signal);
    await storeLogKeys(descriptor.archive);
    const name = descriptorObject(id, term, number);
    await objects.put(name, sealDescriptor(descriptor, name, deps.keyring), { ifAbsent: true, signal });
    const noting = deps.begin();
    noting.update(
      descriptionKind,
      { object: begun, modRevision: taken },
      { ...begun, status: { ...begun.status, digest } },
    );
    await descriptions.reached(await noting.commit(signal), 1_000);
    await removeOlder(id, signal);
    deps.log.info("service described", { service: id, term, number });
    return again(0, "described");
  }

  /** Those of archives that began before keys were stored as they are made. */
  async function storeLogKeys({ metadata, spec, status }: ArchiveObject): Promise<void> {
    const key = deps.backupKeys.get(metadata.id);
    if (key === undefined) return;
    const known = new Map<string, LogKey>();
    for (const each of status.log.flatMap(({ keys }) => keys)) known.set(each.keyId, each);
    if (spec.log !== null) known.set(spec.log.keyId, spec.log);
    for (const each of known.values()) await storeLogKey(objects, each, key.object);
  }

  async function removeOlder(id: string, signal: AbortSignal): Promise<void> {
    const { objects: found } = await objects.list(descriptorsPrefix(id), { limit: 1_000 });
    for (const { key } of found.slice(0, -keptDescriptors)) {
      signal.throwIfAborted();
      await objects.delete(key);
    }
  }

  async function forget(stored: Stored<DescriptionObject>, signal: AbortSignal): Promise<Outcome> {
    const { id } = stored.object.metadata;
    for (const prefix of [descriptorsPrefix(id), logKeysPrefix(id), keysPrefix(id)])
      await deleteBelow(objects, prefix, signal);
    const unit = deps.begin();
    unit.remove(descriptionKind, stored);
    await descriptions.reached(await unit.commit(signal), 1_000);
    return settled;
  }

  return {
    reconciler: { name: "service-description", reconcile },
    *keys() {
      yield* archives.ids();
      for (const id of descriptions.ids()) if (archives.get(id) === undefined) yield id;
    },
    inputs: (id) =>
      [archives.get(id), services.get(id), descriptions.get(id), ...index.of(id)]
        .map((each) => each?.modRevision ?? 0n)
        .join(" "),
    subscribe(onChange) {
      const watches = [
        archives.subscribe(onChange),
        services.subscribe((id) => {
          if (archives.get(id) !== undefined) onChange(id);
        }),
        users.subscribe((id) => onChange(id.slice(0, id.indexOf(".")))),
        backups.subscribe((id, before) => {
          const { serviceId } = backups.get(id)?.object.spec ?? before?.spec ?? {};
          if (serviceId !== undefined) onChange(serviceId);
        }),
      ];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}

type DescribedParts = Pick<DescriptionWorkDeps, "services" | "users" | "organizations" | "index">;

function describing({ services, users, organizations, index }: DescribedParts) {
  return (archive: ArchiveObject): ServiceDescriptor => {
    const { id, organizationId } = archive.metadata;
    const { metadata, spec } = organizations.get(organizationId)?.object ?? {};
    return descriptorOf({
      organization: {
        id: organizationId,
        name: metadata?.name ?? organizationId,
        ...(spec?.ownName && { ownName: true }),
      },
      service: services.get(id)?.object,
      users: usersOfService(users, id),
      archive,
      backups: index.of(id).map(({ object }) => object),
    });
  };
}

/**
 * Waits until what is known of a service now is in its descriptor in the store, but not for long: a store that is away must not
 * stop what does not need it. Nothing is waited for of a service without an archive.
 */
export function createDescriptionWait(
  deps: DescribedParts & Pick<DescriptionWorkDeps, "descriptions" | "archives">,
): (serviceId: string, signal: AbortSignal) => Promise<void> {
  const { descriptions, archives } = deps;
  const describe = describing(deps);
  return async (id, signal) => {
    const isDescribed = () => {
      const archive = archives.get(id)?.object;
      return archive === undefined || descriptions.get(id)?.object.status.digest === digestOf(describe(archive));
    };
    await whenChanged(descriptions, id, isDescribed, describedWithinMs, signal);
  };
}

/** No lower than any that something was stored under. */
function termOf({ service, archive }: ServiceDescriptor): number {
  return Math.max(service?.status.term ?? 0, ...archive.status.log.map(({ term }) => term));
}
