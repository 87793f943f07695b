import { upgradesData } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { type ArchiveObject, sourceOf } from "./archive.ts";

/**
 * Pure: is the archive's log of data of another version than the service has, or is about to have? The log of one does
 * not continue that of the other: an upgrade that is rolled back goes on with the archive, any other begins a new one.
 */
export function isOutgrown({ spec: { source } }: ArchiveObject, { spec }: ManagedServiceObject): boolean {
  return source.version !== spec.version && upgradesData(spec.databaseType);
}

/** Pure: may an upgrade that outgrows the archive's log still be rolled back? Until then its source is what it was. */
export function isOutgrownOnTrial(archive: ArchiveObject, service: ManagedServiceObject): boolean {
  return service.spec.trial !== undefined && isOutgrown(archive, service);
}

/**
 * Pure: the archive with its service's name and source of now; undefined while it has them, or keeps those of before.
 * An archive that is outgrown loses its log; where another image came under the data, a new base follows.
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
  if (isSame || deletionRequestedAt !== undefined || isOutgrownOnTrial(archive, service)) return undefined;
  const isUpgraded = isOutgrown(archive, service);
  const isOtherImage = isUpgraded || (spec.source.image !== "" && spec.source.image !== source.image);
  return {
    ...archive,
    metadata: { ...nextMetadata(metadata, now), name },
    spec: { ...spec, source, ...(isUpgraded && { log: null }) },
    status: isOtherImage ? { ...status, imageChangedAt: now } : status,
  };
}
