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
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Keyring } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { whenChanged } from "#kernel/store/when-changed.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { type DatabaseUserObject, usersOfService } from "../../contents/user/database-user.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { ArchiveObject } from "../archive/archive.ts";
import type { BackupIndex, BackupObject } from "../backup.ts";
import { descriptorSyncKind, type DescriptorSyncObject, newDescriptorSync } from "./descriptor-sync.ts";
import { descriptorOf, digestOf, sealDescriptor, type ServiceDescriptor } from "./service-descriptor.ts";
import { deleteBelow } from "./stored-prefix.ts";

export interface DescriptorSyncDeps {
  readonly descriptorSyncs: Collection<DescriptorSyncObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly users: Collection<DatabaseUserObject>;
  readonly archives: Collection<ArchiveObject>;
  readonly backups: Collection<BackupObject>;
  readonly organizations: Collection<Organization>;
  readonly index: BackupIndex;
  readonly objects: ObjectStore;
  readonly keyring: Keyring;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
  readonly log: Log;
}

/** Number of retained descriptors of a service. More than one, because the newest may be incomplete. */
const retainedDescriptors = 3;
const descriptorTimeoutMs = 3_000;

/**
 * Service descriptors: stores with each service's backups the data for a recovery from the object store alone. A new
 * descriptor (`service-descriptor.ts`) is written whenever service, users, backups or archive change. Key: service id.
 */
export function createDescriptorSyncWork(deps: DescriptorSyncDeps): ControlLoop {
  const { descriptorSyncs, services, users, archives, backups, index, objects, clock } = deps;
  const build = descriptorBuilder(deps);

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const stored = descriptorSyncs.get(id);
    const archive = archives.get(id) ?? (await archives.getCurrent(id, signal));
    if (archive === undefined) return stored === undefined ? settled : remove(stored, signal);
    if (stored === undefined) {
      const unit = deps.begin();
      unit.create(descriptorSyncKind, newDescriptorSync(id, archive.object.metadata.organizationId, clock.now()));
      await descriptorSyncs.untilRevision(await unit.commit(signal), 1_000);
      return again(0, "descriptor sync created");
    }
    const descriptor = build(archive.object);
    const digest = digestOf(descriptor);
    return digest === stored.object.status.digest ? settled : write(stored, descriptor, digest, signal);
  }

  /** Stores the descriptor's number in etcd first, so that no number is used twice after an interrupted write. */
  async function write(
    { object, modRevision }: Stored<DescriptorSyncObject>,
    descriptor: ServiceDescriptor,
    digest: string,
    signal: AbortSignal,
  ): Promise<ReconcileOutcome> {
    const { id } = object.metadata;
    const number = object.status.number + 1;
    const term = Math.max(object.status.term, termOf(descriptor));
    const numbered = { ...object, status: { ...object.status, number, term } };
    const claim = deps.begin();
    claim.update(descriptorSyncKind, { object, modRevision }, numbered);
    const claimRevision = await claim.commit(signal);
    const name = descriptorObject(id, term, number);
    await objects.put(name, sealDescriptor(descriptor, name, deps.keyring), { ifAbsent: true, signal });
    const confirmation = deps.begin();
    confirmation.update(
      descriptorSyncKind,
      { object: numbered, modRevision: claimRevision },
      { ...numbered, status: { ...numbered.status, digest } },
    );
    await descriptorSyncs.untilRevision(await confirmation.commit(signal), 1_000);
    await removeOlder(id, signal);
    deps.log.info("service descriptor stored", { service: id, term, number });
    return again(0, "descriptor stored");
  }

  async function removeOlder(id: string, signal: AbortSignal): Promise<void> {
    const { objects: found } = await objects.list(descriptorsPrefix(id), { limit: 1_000 });
    for (const { key } of found.slice(0, -retainedDescriptors)) {
      signal.throwIfAborted();
      await objects.delete(key);
    }
  }

  async function remove(stored: Stored<DescriptorSyncObject>, signal: AbortSignal): Promise<ReconcileOutcome> {
    const { id } = stored.object.metadata;
    for (const prefix of [descriptorsPrefix(id), logKeysPrefix(id), keysPrefix(id)])
      await deleteBelow(objects, prefix, signal);
    const unit = deps.begin();
    unit.remove(descriptorSyncKind, stored);
    await descriptorSyncs.untilRevision(await unit.commit(signal), 1_000);
    return settled;
  }

  return {
    reconciler: { name: "service-description", reconcile },
    *keys() {
      yield* archives.ids();
      for (const id of descriptorSyncs.ids()) if (archives.get(id) === undefined) yield id;
    },
    inputs: (id) =>
      [archives.get(id), services.get(id), descriptorSyncs.get(id), ...index.of(id)]
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

type DescriptorSources = Pick<DescriptorSyncDeps, "services" | "users" | "organizations" | "index">;

function descriptorBuilder({ services, users, organizations, index }: DescriptorSources) {
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
 * Waits until the current state of a service is in its stored descriptor, at most 3 seconds: an unavailable object
 * store must not fail calls. Does not wait for a service without an archive.
 */
export function createDescriptorWait(
  deps: DescriptorSources & Pick<DescriptorSyncDeps, "descriptorSyncs" | "archives">,
): (serviceId: string, signal: AbortSignal) => Promise<void> {
  const { descriptorSyncs, archives } = deps;
  const build = descriptorBuilder(deps);
  return async (id, signal) => {
    const isStored = () => {
      const archive = archives.get(id)?.object;
      return archive === undefined || descriptorSyncs.get(id)?.object.status.digest === digestOf(build(archive));
    };
    await whenChanged(descriptorSyncs, id, isStored, descriptorTimeoutMs, signal);
  };
}

/** The highest term under which anything was stored. */
function termOf({ service, archive }: ServiceDescriptor): number {
  return Math.max(service?.status.term ?? 0, ...archive.status.log.map(({ term }) => term));
}
