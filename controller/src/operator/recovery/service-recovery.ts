import { descriptorsPrefix, servicesPrefix } from "@holdfast/common/backup/object-names.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { type Organization, organizationKind } from "#access/organization/organization.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import { type AutomationPause, pausePrefix } from "#kernel/clock/automation-pauses.ts";
import { createSealer, type Keyring } from "#kernel/secrets/sealer.ts";
import type { Kind } from "#kernel/store/kind.ts";
import { keyOf, nameKeyOf, newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { Store, Transaction } from "#kernel/store/store.ts";
import { operationKind } from "#operation/operation.ts";
import { type ArchiveObject, archiveKind } from "#services/backup/archive/archive.ts";
import { backupKeyKind } from "#services/backup/backup-key.ts";
import { backupKind } from "#services/backup/backup.ts";
import { descriptorSyncKind, newDescriptorSync } from "#services/backup/objects/descriptor-sync.ts";
import { replayPlanOf } from "#services/backup/log/lowered-settings.ts";
import { openDescriptor, type ServiceDescriptor } from "#services/backup/objects/service-descriptor.ts";
import { readKeyVersions, readLogKeys } from "#services/backup/objects/stored-key.ts";
import { objectsBelow } from "#services/backup/objects/stored-prefix.ts";
import { databaseUserKind } from "#services/contents/user/database-user.ts";
import { type ManagedServiceObject, managedServiceKind } from "#services/service/managed-service.ts";
import { type NewestBase, newestBase } from "./newest-base.ts";
import { type RecoveredService, recoveredService } from "./recovered-service.ts";
import { readStoredLog } from "./stored-log.ts";

export interface RecoverDeps {
  readonly store: Store;
  readonly objects: ObjectStore;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: Log;
  readonly catalog: CatalogData;
}

/** Result of the recovery of one service. */
export interface Recovery {
  readonly id: string;
  readonly name: string;
  /**
   * `recovers`: controllers create the service at their next start; `kept`: the service was deleted, and its backups
   * are registered again; `skipped`: nothing was written.
   */
  readonly outcome: "recovers" | "kept" | "skipped";
  /** Id of the base backup of a service that `recovers`, and the time up to which at least its data are complete. */
  readonly backupId?: string;
  readonly to?: string;
  /** Memory that the machine gets until its log is replayed; absent if the plan has enough. */
  readonly replayMemoryGb?: number;
  /** Reason for which a service was skipped, or cannot finish its recovery. */
  readonly reason?: string;
}

type Puts = Transaction["puts"];

const putsPerCommit = 100;

/**
 * Writes every service that the object store describes, so that controllers create it again from its newest backup and
 * archive: with the same id, names, settings and users, under a higher term than any that was stored. A service that
 * exists by id or name is skipped, so the call can be repeated after an interruption. The first write sets the pause
 * "restored", so that backups do not expire before an operator releases it.
 */
export async function recoverServices(deps: RecoverDeps, signal?: AbortSignal): Promise<Recovery[]> {
  const { store, clock } = deps;
  const reason =
    "Services were recovered from the object store. Check them, then run `holdfast admin resume-automation restored`.";
  const pause: AutomationPause = { kind: "restored", reason, since: clock.now(), until: null };
  await put(store, [{ key: `${pausePrefix}restored`, value: JSON.stringify(pause) }], signal);
  const recovered: Recovery[] = [];
  for (const id of await serviceIds(deps.objects, signal)) recovered.push(await recoverOne(deps, id, signal));
  return recovered;
}

async function recoverOne(deps: RecoverDeps, id: string, signal: AbortSignal | undefined): Promise<Recovery> {
  const { store, objects, keyring, clock, log } = deps;
  const skipped = (reason: string, name = ""): Recovery => ({ id, name, outcome: "skipped", reason });
  if ((await store.get(keyOf(archiveKind, id), signal)) !== undefined) return skipped("the service exists already");
  const newest = await newestDescriptor(deps, id);
  if (newest === undefined) return skipped("the object store has no descriptor of it that can be opened");
  const { descriptor: found, position } = newest;
  const { name } = (found.service ?? found.archive).metadata;
  const organizationId = await organizationFor(found, deps, signal);
  const [versions, logKeys] = [await readKeyVersions(objects, id), await readLogKeys(objects, id)];
  const key = { metadata: newMetadata(id, clock.now(), { organizationId }), spec: { versions }, status: {} };
  const stored = await readStoredLog(objects, id, found.archive.status.log, logKeys);
  const base = await newestBase(found, key, stored.ranges, { objects, sealer: createSealer(keyring), log });
  if (base === undefined && found.service !== null) return skipped("none of its backups can be opened", name);
  const rebuilt = recoveredService({ ...deps, descriptor: found, organizationId, log: stored, base });
  const isTaken = rebuilt.service !== undefined && (await isNameTaken(rebuilt.service, deps, signal));
  if (isTaken) return skipped("another service has the same name", name);
  await put(
    store,
    [objectPut(backupKeyKind, key), ...rebuilt.backups.map((each) => objectPut(backupKind, each))],
    signal,
  );
  await put(
    store,
    rebuilt.users.map((each) => objectPut(databaseUserKind, each)),
    signal,
  );
  const description = newDescriptorSync(id, organizationId, clock.now());
  const puts = [objectPut(descriptorSyncKind, { ...description, status: { ...description.status, ...position } })];
  await put(store, [...puts, objectPut(archiveKind, rebuilt.archive), ...servicePuts(rebuilt)], signal);
  const facts = { service: id, name, base: base?.backup.metadata.id };
  if (rebuilt.service === undefined) {
    log.info("backups of a service registered again", facts);
    return { id, name, outcome: "kept" };
  }
  log.info("service will be recovered", facts);
  const from = base && { backupId: base.backup.metadata.id, to: base.to };
  return { id, name, outcome: "recovers", ...from, ...replayNeeds(rebuilt.archive, rebuilt.service, base, deps) };
}

/** The memory that the replay needs beyond the plan, so that an operator can provide a host with it. */
function replayNeeds(
  { status }: ArchiveObject,
  service: ManagedServiceObject,
  base: NewestBase | undefined,
  { catalog }: RecoverDeps,
): Pick<Recovery, "replayMemoryGb" | "reason"> {
  const plan = replayPlanOf(status, service, base?.backup.status.startedAt ?? 0, catalog);
  if (plan === undefined) return {};
  if (plan === null) return { reason: "the replay of its log needs more memory than any plan has" };
  return { replayMemoryGb: plan.memoryGb };
}

/** The writes of service, operation and name. They follow all other writes, so that referenced objects exist. */
function servicePuts({ service, operation }: RecoveredService): Puts {
  if (service === undefined || operation === undefined) return [];
  const { id, name, organizationId } = service.metadata;
  return [
    objectPut(operationKind, operation),
    { key: nameKeyOf(managedServiceKind, organizationId, name), value: id },
    objectPut(managedServiceKind, service),
  ];
}

function objectPut<R extends Resource<unknown, unknown>>(kind: Kind<R>, object: R): Puts[number] {
  return { key: keyOf(kind, object.metadata.id), value: kind.format(object) };
}

async function put(store: Store, puts: Puts, signal: AbortSignal | undefined): Promise<void> {
  for (let at = 0; at < puts.length; at += putsPerCommit)
    await store.commit({ conditions: [], puts: puts.slice(at, at + putsPerCommit), deletes: [] }, signal);
}

async function serviceIds(objects: ObjectStore, signal: AbortSignal | undefined): Promise<string[]> {
  const ids: string[] = [];
  for (let after = servicesPrefix; ; ) {
    signal?.throwIfAborted();
    const { objects: found } = await objects.list(servicesPrefix, { after, limit: 1 });
    const [id = ""] = found[0]?.key.slice(servicesPrefix.length).split("/") ?? [];
    if (id === "") return ids;
    ids.push(id);
    // The next page begins after all objects of the service: `~` sorts after all characters of keys.
    after = `${servicesPrefix}${id}/~`;
  }
}

/**
 * The newest descriptor that can be opened. Objects are written atomically, so the newest one is complete even if a
 * controller crashed during a write.
 */
async function newestDescriptor(
  { objects, keyring, log }: RecoverDeps,
  id: string,
): Promise<{ descriptor: ServiceDescriptor; position: { term: number; number: number } } | undefined> {
  const keys: string[] = [];
  for await (const { key } of objectsBelow(objects, descriptorsPrefix(id))) keys.push(key);
  for (const key of keys.toReversed()) {
    const sealed = await objects.get(key);
    if (sealed === undefined) continue;
    try {
      const [term, number] = key.slice(descriptorsPrefix(id).length).split("/").map(Number);
      const descriptor = await openDescriptor(sealed, key, keyring);
      return { descriptor, position: { term: term ?? 0, number: number ?? 0 } };
    } catch (error) {
      log.warn("descriptor cannot be opened", { object: key, error: String(error) });
    }
  }
  return undefined;
}

async function isNameTaken(
  { metadata }: Resource<unknown, unknown>,
  { store }: RecoverDeps,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { id, name, organizationId } = metadata;
  const holder = await store.get(nameKeyOf(managedServiceKind, organizationId, name), signal);
  return holder !== undefined && holder.value !== id;
}

/**
 * Id of the organization with the stored id, or else with the same claimed name, or else of a new one. An organization
 * without a claimed name is found only by id.
 */
export async function organizationFor(
  { organization: { id, name, ownName } }: Pick<ServiceDescriptor, "organization">,
  { store, clock }: Pick<RecoverDeps, "store" | "clock">,
  signal: AbortSignal | undefined,
): Promise<string> {
  if ((await store.get(keyOf(organizationKind, id), signal)) !== undefined) return id;
  const nameKey = nameKeyOf(organizationKind, "", name);
  const namesake = ownName ? undefined : await store.get(nameKey, signal);
  if (namesake !== undefined) return namesake.value;
  const organization: Organization = {
    metadata: newMetadata(id, clock.now(), { name }),
    spec: { quota: {}, ...(ownName && { ownName }) },
    status: {},
  };
  const claim = ownName ? [] : [{ key: nameKey, value: id }];
  await put(store, [...claim, objectPut(organizationKind, organization)], signal);
  return id;
}
