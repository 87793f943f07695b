import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { DatabaseUserObject } from "../../contents/user/database-user.ts";
import { type StoredNames, storedNamesUnder } from "@holdfast/common/stored-names.ts";
import {
  type ManagedServiceObject,
  type ManagedServiceSpec,
  managedServiceStoredNames,
} from "../../service/managed-service.ts";
import { hash } from "#kernel/runtime/ownership.ts";

/**
 * The backup state of one service besides its backups: settings, source of copies, log ranges. Its id is the service's,
 * and it outlives the service.
 */
export type ArchiveObject = Resource<ArchiveSpec, ArchiveStatus>;

/** Stored keys of fields whose name in code differs. */
export const archiveStoredNames: StoredNames = {
  "status.deleted.retainedNodes": "keptNodes",
  ...storedNamesUnder("status.deleted.service", managedServiceStoredNames),
};

export const archiveKind = defineKind<ArchiveObject>("archive", { storedNames: archiveStoredNames });

export interface ArchiveSpec {
  /** Null: the default, which follows from the id. */
  readonly settings: BackupSettings | null;
  /** The configuration that a service restored from a backup inherits. */
  readonly source: BackupSource;
  /** The archive that the log goes to; null while no log is archived. */
  readonly log: LogArchiving | null;
}

/** The archive that a service's primary writes its log to. */
export interface LogArchiving {
  readonly archiveId: string;
  /** Id of the data key, as log objects name it. */
  readonly keyId: string;
  readonly keyVersion: number;
  /** Data key of the log, wrapped like those of backups (`backup-key.ts`). */
  readonly wrappedKey: string;
  /** Time at which the archive began, in milliseconds since 1970. */
  readonly since: number;
  /** Earlier keys that were rotated before any range was recorded: objects may be encrypted under them. */
  readonly earlierKeys?: readonly LogKey[];
}

export type LogKey = Pick<LogArchiving, "keyId" | "keyVersion" | "wrappedKey">;

/** A span of time, in milliseconds since 1970, both ends included. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** Log without a gap that is durable in the store, of one archive and one term. Times are commit times. */
export interface LogRange {
  readonly archiveId: string;
  readonly term: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly fromTime: number;
  readonly toTime: number;
  /** Every key under which its objects are encrypted. */
  readonly keys: readonly LogKey[];
  /** True if it continues the range of the archive's previous term. */
  readonly continues?: boolean;
  /** A later term branched off before its end: the remainder, which only its primary had, was lost. */
  readonly isAbandoned?: true;
  /** Spans in which commit times occur twice because the machine's clock was set back; absent if there are none. */
  readonly repeated?: readonly TimeSpan[];
  /**
   * Objects behind its end, which only its primary had: a later term branched off before them. A restore to a moment of
   * them reads them, not the later terms. Absent if there are none.
   */
  readonly tail?: LogTail;
  /** Objects that a reader found lost or damaged, oldest first; absent if there are none. */
  readonly holes?: readonly LogHole[];
  /** Positions of the log at some times, oldest first, so that old log can be deleted. */
  readonly checkpoints: readonly { readonly at: number; readonly sequence: number }[];
}

/** Log of a term behind the end of its range. Times are commit times. */
export interface LogTail {
  readonly lastSequence: number;
  /** Newest commit in front of it. */
  readonly fromTime: number;
  readonly toTime: number;
}

/** Lost or damaged objects of a range: neither they nor the log between them and the next base can be replayed. */
export interface LogHole {
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Newest commit that the objects before it certainly have, in milliseconds since 1970. */
  readonly from: number;
  /** A base that began at this time or later needs only objects after the hole. */
  readonly to: number;
}

/** Configuration that copies of a service inherit. */
export type BackupSource = Pick<
  ManagedServiceSpec,
  | "databaseType"
  | "version"
  | "planName"
  | "storageSizeGb"
  | "storageTier"
  | "zone"
  | "allowedCidrs"
  | "parameters"
  | "image"
>;

export interface ArchiveStatus {
  /** Time at which the first automated backup is due. All times are milliseconds since 1970. */
  readonly firstDueAt: number;
  /** Time at which the last automated backup was created; null before the first. */
  readonly lastAutomatedAt: number | null;
  /** Time of the last change of the image; absent if there was none. A backup follows each change. */
  readonly imageChangedAt?: number;
  /** Absent until an engine reported its settings, and for engines whose replay depends on none. */
  readonly settings?: ArchivedSettings;
  /** Raised with each backup, so that two transactions that count backups and add one conflict. */
  readonly requests: number;
  /** Recorded ranges of the log, oldest first. */
  readonly log: readonly LogRange[];
  /** Data for an undelete; null while the service exists, and if it cannot be undeleted. */
  readonly deleted: DeletedService | null;
}

/** Settings that the archived log was written under; a replay needs at least as much of each. */
export interface ArchivedSettings {
  /** Those of the running engine. */
  readonly current: Readonly<Record<string, string>>;
  /** The last time at which one of them became lower, in milliseconds since 1970; null if none did. */
  readonly loweredAt: number | null;
  /** The greatest values before that, since the base of then. */
  readonly before: Readonly<Record<string, string>>;
}

/** A deleted service, with everything that an undelete needs. Times are milliseconds since 1970. */
export interface DeletedService {
  readonly at: number;
  readonly until: number;
  /** The backup that it is restored from; null if only its disks exist. */
  readonly backupId: string | null;
  /**
   * Its stopped machines with their data: an undelete uses them as long as all of them exist. Absent if they were
   * deleted with it.
   */
  readonly retainedNodes?: readonly string[];
  readonly service: ManagedServiceObject;
  readonly users: readonly DatabaseUserObject[];
}

/** Time for which a deleted service can be undeleted. */
export const undeleteForMs = 7 * 86_400_000;

/** The archive of a service without one. */
export function newArchive(service: ManagedServiceObject, firstDueAt: number, now: number): ArchiveObject {
  const { id, name, organizationId } = service.metadata;
  return {
    metadata: newMetadata(id, now, { name, organizationId }),
    spec: { settings: null, source: sourceOf(service), log: null },
    status: { firstDueAt, lastAutomatedAt: null, requests: 0, log: [], deleted: null },
  };
}

export function sourceOf({ spec }: ManagedServiceObject): BackupSource {
  const { databaseType, version, planName, storageSizeGb, storageTier, zone, allowedCidrs, parameters, image } = spec;
  return { databaseType, version, planName, storageSizeGb, storageTier, zone, allowedCidrs, parameters, image };
}

/** The effective backup settings of a service: those that were chosen, or the defaults. */
export function settingsOf(serviceId: string, archive: ArchiveObject | undefined): BackupSettings {
  return archive?.spec.settings ?? defaultSettings(serviceId);
}

/** The time of day of the daily backup, UTC, and the retention of automated backups. */
export interface BackupSettings {
  readonly hour: number;
  readonly minute: number;
  readonly retentionDays: number;
}

const dayMs = 86_400_000;
const minuteMs = 60_000;
const minutesOfDay = 24 * 60;
const defaultRetentionDays = 7;

/** Settings of a service whose owner chose none. They follow from the id, and are spread evenly over the day. */
export function defaultSettings(serviceId: string): BackupSettings {
  const minutes = hash(`backup-time/${serviceId}`) % minutesOfDay;
  return { hour: Math.floor(minutes / 60), minute: minutes % 60, retentionDays: defaultRetentionDays };
}

/** The first daily time after a moment, in milliseconds since 1970. */
export function nextDaily({ hour, minute }: BackupSettings, after: number): number {
  const within = (hour * 60 + minute) * minuteMs;
  const today = Math.floor(after / dayMs) * dayMs + within;
  return today > after ? today : today + dayMs;
}
