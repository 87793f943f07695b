import { attemptPrefix, logPrefix, logsPrefix } from "@holdfast/common/backup/object-names.ts";
import type { GrantScope, ObjectGrant, ObjectGrantSource } from "#fleet/object-grants.ts";
import { managedServiceKind, type ManagedServiceObject } from "../../service/managed-service.ts";
import { readsLog, type ServiceOrigin, unfinishedOrigin } from "../../service/service-origin.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ArchiveObject } from "../archive/archive.ts";
import { chainOf } from "../backup-chain.ts";
import type { BackupIndex, BackupObject } from "../backup.ts";
import { drillKind, type DrillIndex, originOf } from "../drill/drill.ts";
import { logAfter } from "../restore/restorable.ts";
import { taskTarget } from "../../service/member/member-roles.ts";

export interface ObjectGrantsDeps {
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly archives: Pick<Collection<ArchiveObject>, "get">;
  readonly liveArchive: (serviceId: string) => ArchiveObject | undefined;
  readonly index: Pick<BackupIndex, "get">;
  readonly drillIndex: Pick<DrillIndex, "get">;
}

const writing: ReadonlySet<string> = new Set(["PUT", "HEAD", "GET"]);
const reading: ReadonlySet<string> = new Set(["HEAD", "GET"]);
const nothing: readonly ObjectGrant[] = [];

/**
 * Grants to machines of services and drills: the primary writes backups and log of its service, and a restored service
 * or drill reads its source.
 */
export function createBackupObjectGrants(deps: ObjectGrantsDeps): readonly ObjectGrantSource[] {
  return [
    {
      ownerKind: managedServiceKind.name,
      grantsOf: (machineId, serviceId, scope) => grantsOfService(machineId, serviceId, scope, deps),
    },
    {
      ownerKind: drillKind.name,
      grantsOf: (machineId, drillId, scope) => grantsOfDrill(machineId, drillId, scope, deps),
    },
  ];
}

function grantsOfService(
  machineId: string,
  id: string,
  scope: GrantScope,
  deps: ObjectGrantsDeps,
): readonly ObjectGrant[] {
  const service = deps.services.get(id)?.object;
  if (service === undefined || taskTarget(service).id !== machineId) return nothing;
  switch (scope.case) {
    case "backupId": {
      const backup = deps.index.get(scope.value)?.object;
      const isOwn = backup?.spec.serviceId === id && backup.status.machineId === machineId;
      if (!isOwn || backup.status.state !== "running") return nothing;
      const base = backup.spec.baseId === undefined ? undefined : deps.index.get(backup.spec.baseId)?.object;
      // The machine reads earlier attempts, to reuse their objects.
      const attempts = attemptsOf(id, backup).map(({ attempt, prefix }) => ({
        prefix,
        methods: attempt === backup.status.attempt ? writing : reading,
      }));
      return base === undefined ? attempts : [...attempts, ...attemptsOf(id, base).map(readable)];
    }
    case "archiveId": {
      const log = deps.archives.get(id)?.object.spec.log ?? null;
      if (log?.archiveId !== scope.value) return nothing;
      // The machine reads the log of earlier primaries, to find where to continue.
      const earlier = readable({ prefix: logsPrefix(id) });
      return [{ prefix: logPrefix({ service: id, term: service.status.term }), methods: writing }, earlier];
    }
    case "restoreId": {
      const origin = unfinishedOrigin(service.spec);
      return origin?.restoreId === scope.value ? sourcesOf(origin, deps) : nothing;
    }
    default:
      return nothing;
  }
}

function grantsOfDrill(
  machineId: string,
  drillId: string,
  scope: GrantScope,
  deps: ObjectGrantsDeps,
): readonly ObjectGrant[] {
  const drill = deps.drillIndex.get(drillId);
  const origin = drill?.status.machineId === machineId ? originOf(drill) : undefined;
  if (origin === undefined || scope.case !== "restoreId" || scope.value !== origin.restoreId) return nothing;
  return sourcesOf(origin, deps);
}

function sourcesOf(origin: ServiceOrigin, { liveArchive, index }: ObjectGrantsDeps): ObjectGrant[] {
  const { serviceId, backupId } = origin;
  const backup = index.get(backupId)?.object;
  if (backup === undefined) return [];
  const backups = chainOf(backup, (id) => index.get(id)?.object) ?? [backup];
  const chain = readsLog(origin) ? logAfter(backup, liveArchive(serviceId)?.status.log ?? []) : undefined;
  const logs = (chain ?? []).map(({ term }) => ({ prefix: logPrefix({ service: serviceId, term }) }));
  return [...backups.flatMap((each) => attemptsOf(serviceId, each)), ...logs].map(readable);
}

const readable = ({ prefix }: { readonly prefix: string }): ObjectGrant => ({ prefix, methods: reading });

/** All attempts of a backup with their prefixes: the last attempt may have reused objects of earlier ones. */
function attemptsOf(service: string, { metadata, status }: BackupObject) {
  const location = { service, backup: metadata.id };
  const attempts = Array.from({ length: status.attempt }, (_, index) => index + 1);
  return attempts.map((attempt) => ({ attempt, prefix: attemptPrefix({ ...location, attempt }) }));
}
