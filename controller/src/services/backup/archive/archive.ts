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
 * The backup state of one service besides its backups: settings, configuration for copies, log ranges. The id is the
 * service's; an archive outlives its service.
 */
export type ArchiveObject = Resource<ArchiveSpec, ArchiveStatus>;

/** Stored keys of fields whose name in code differs. */
export const archiveStoredNames: StoredNames = {
  "status.settings.beforeLowering": "before",
  "status.deleted.retainedNodes": "keptNodes",
  ...storedNamesUnder("status.deleted.service", managedServiceStoredNames),
};

export const archiveKind = defineKind<ArchiveObject>("archive", { storedNames: archiveStoredNames });

export interface ArchiveSpec {
  /** Null: the default settings, computed from the service id (`defaultSettings`). */
  readonly settings: BackupSettings | null;
  /** The configuration that a service restored from a backup inherits. */
  readonly source: BackupSource;
  /** The archive that the log goes to; null while no log is archived. */
  readonly log: LogArchiving | null;
}

/** The archive that a service's primary writes its log to. */
export interface LogArchiving {
  readonly archiveId: string;
  /** Id of the data key. Headers of log objects contain it. */
  readonly keyId: string;
  readonly keyVersion: number;
  /** Data key of the log, wrapped like the data keys of backups (`../backup-key.ts`). */
  readonly wrappedKey: string;
  /** Time at which the archive began, in milliseconds since 1970. */
  readonly since: number;
  /** Keys that were rotated before any range was recorded. Log objects may be encrypted under them. */
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
  /** True if this range continues the range of the archive's previous term. */
  readonly continues?: boolean;
  /** A later term branched off before this range's end: log after the branch, which only its primary had, is lost. */
  readonly isAbandoned?: true;
  /** Spans in which commit times occur twice because the machine's clock was set back; absent if there are none. */
  readonly repeated?: readonly TimeSpan[];
  /**
   * Log objects after the range's end, which only the term's primary had: a later term branched off before them. A
   * restore to a time in the tail reads the tail, not the later terms. Absent if there are none.
   */
  readonly tail?: LogTail;
  /** Objects that a reader found lost or damaged, oldest first; absent if there are none. */
  readonly holes?: readonly LogHole[];
  /** Sequence numbers of the log at recorded times, oldest first. They determine which log is old enough to delete. */
  readonly checkpoints: readonly { readonly at: number; readonly sequence: number }[];
}

/** Log of a term after the end of its range. Times are commit times. */
export interface LogTail {
  readonly lastSequence: number;
  /** Newest commit before the tail. */
  readonly fromTime: number;
  readonly toTime: number;
}

/** Lost or damaged objects of a range. The log from them to the next base backup cannot be replayed. */
export interface LogHole {
  readonly firstSequence: number;
  readonly lastSequence: number;
  /** Newest commit that the objects before the hole certainly contain, in milliseconds since 1970. */
  readonly from: number;
  /** A base backup that began at this time or later needs only objects after the hole. */
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
  | "layoutMode"
  | "serverCollation"
>;

export interface ArchiveStatus {
  /** Time at which the first automated backup is due. All times are milliseconds since 1970. */
  readonly firstDueAt: number;
  /** Time at which the last automated backup was created; null before the first. */
  readonly lastAutomatedAt: number | null;
  /** Time of the last change of the image; absent if there was none. A backup follows each change. */
  readonly imageChangedAt?: number;
  /** Absent until an engine reported its settings, and for engines whose replay does not depend on settings. */
  readonly settings?: ArchivedSettings;
  /** A counter that each new backup raises, so that concurrent transactions that count backups and add one conflict. */
  readonly requests: number;
  /** Recorded ranges of the log, oldest first. */
  readonly log: readonly LogRange[];
  /** Data for an undelete; null while the service exists, and if it cannot be undeleted. */
  readonly deleted: UndeleteRecord | null;
}

/**
 * Engine settings under which the archived log was written, such as `max_connections`. A replay needs at least these
 * values.
 */
export interface ArchivedSettings {
  /** Settings of the running engine. */
  readonly current: Readonly<Record<string, string>>;
  /** Time at which a setting was last lowered, in milliseconds since 1970; null if none was. */
  readonly loweredAt: number | null;
  /** The highest values from the base backup before `loweredAt` to `loweredAt`. */
  readonly beforeLowering: Readonly<Record<string, string>>;
}

/** A deleted service, with everything that an undelete needs. Times are milliseconds since 1970. */
export interface UndeleteRecord {
  readonly at: number;
  readonly until: number;
  /** The backup that it is restored from; null if only its disks exist. */
  readonly backupId: string | null;
  /**
   * Ids of the service's stopped machines with their data. An undelete uses them while all of them exist. Absent if
   * they were deleted with the service.
   */
  readonly retainedNodes?: readonly string[];
  readonly service: ManagedServiceObject;
  readonly users: readonly DatabaseUserObject[];
}

/** Period after a deletion in which the service can be undeleted. */
export const undeletePeriodMs = 7 * 86_400_000;

/** A new archive, for a service that has none. */
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
  const source = { databaseType, version, planName, storageSizeGb, storageTier, zone, allowedCidrs, parameters, image };
  return {
    ...source,
    ...(spec.layoutMode !== undefined && { layoutMode: spec.layoutMode }),
    ...(spec.serverCollation !== undefined && { serverCollation: spec.serverCollation }),
  };
}

/** The effective backup settings of a service: the chosen settings, or the defaults. */
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

/** Settings of a service whose owner chose none. The time is a hash of the id, so that backups spread over the day. */
export function defaultSettings(serviceId: string): BackupSettings {
  const minutes = hash(`backup-time/${serviceId}`) % minutesOfDay;
  return { hour: Math.floor(minutes / 60), minute: minutes % 60, retentionDays: defaultRetentionDays };
}

/** The first daily backup time after `after`. Both are milliseconds since 1970. */
export function nextDaily({ hour, minute }: BackupSettings, after: number): number {
  const within = (hour * 60 + minute) * minuteMs;
  const today = Math.floor(after / dayMs) * dayMs + within;
  return today > after ? today : today + dayMs;
}
