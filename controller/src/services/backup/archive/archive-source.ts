import { upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { type ArchiveObject, sourceOf } from "./archive.ts";

/**
 * True if the archived log is of another engine version than the service's current or upgrade version. A log cannot
 * continue over a change of version: a rolled back upgrade continues the archive, a completed one starts a new one.
 */
export function isOfOlderVersion({ spec: { source } }: ArchiveObject, { spec }: ManagedServiceObject): boolean {
  return source.version !== spec.version && upgradesData(spec.databaseType);
}

/**
 * True while an upgrade that ends the archive's log may still be rolled back. Until it is final the archive retains
 * its source.
 */
export function awaitsUpgradeOutcome(archive: ArchiveObject, service: ManagedServiceObject): boolean {
  return service.spec.canary !== undefined && isOfOlderVersion(archive, service);
}

/**
 * The archive with the current name and source of its service; undefined if nothing changes. A change of version
 * ends the log, and a change of the image makes a new base backup due.
 */
export function withSource(
  archive: ArchiveObject,
  service: ManagedServiceObject,
  now: number,
): ArchiveObject | undefined {
  const { metadata, spec, status } = archive;
  const { name, deletionRequestedAt } = service.metadata;
  const source = sourceOf(service);
  const isSame = metadata.name === name && JSON.stringify(spec.source) === JSON.stringify(source);
  if (isSame || deletionRequestedAt !== undefined || awaitsUpgradeOutcome(archive, service)) return undefined;
  const isUpgraded = isOfOlderVersion(archive, service);
  const isOtherImage = isUpgraded || (spec.source.image !== "" && spec.source.image !== source.image);
  return {
    ...archive,
    metadata: { ...nextMetadata(metadata, now), name },
    spec: { ...spec, source, ...(isUpgraded && { log: null }) },
    status: isOtherImage ? { ...status, imageChangedAt: now } : status,
  };
}
