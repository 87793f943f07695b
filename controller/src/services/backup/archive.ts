import { defineKind } from "#kernel/store/kind.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { DatabaseUserObject } from "../contents/user/database-user.ts";
import { storedNamesUnder } from "@holdfast/common/stored-names.ts";
import {
  type ManagedServiceObject,
  type ManagedServiceSpec,
  managedServiceStoredNames,
} from "../service/managed-service.ts";
import { type BackupSettings, defaultSettings } from "./backup-settings.ts";

/** All that is kept of one service's backups but the backups themselves; its id is the service's, which it outlives. */
export type ArchiveObject = Resource<ArchiveSpec, ArchiveStatus>;
export const archiveKind = defineKind<ArchiveObject>("archive", {
  storedNames: storedNamesUnder("status.deleted.service", managedServiceStoredNames),
});

export interface ArchiveSpec {
  /** Null: those that follow from the id. */
  readonly settings: BackupSettings | null;
  /** What a service made out of a backup inherits. */
  readonly source: BackupSource;
  /** How the service's log is archived; null while it is not. */
  readonly log: LogArchiving | null;
}

/** The archive that a service's machine brings its log to. */
export interface LogArchiving {
  readonly archiveId: string;
  /** By which the log's objects name their key. */
  readonly keyId: string;
  readonly keyVersion: number;
  /** Data key of the log, wrapped as those of backups. */
  readonly wrappedKey: string;
  /** When the archive began. */
  readonly since: number;
  /** Of before, where the key was renewed before anything was noted: objects may be sealed with them. */
  readonly earlierKeys?: readonly LogKey[];
}

export type LogKey = Pick<LogArchiving, "keyId" | "keyVersion" | "wrappedKey">;

/** Moments from one to another, in milliseconds since 1970; both included. */
export interface TimeSpan {
  readonly from: number;
  readonly to: number;
}

/** Log without a gap, as it is durable in the store. Times are those of its commits. */
export interface LogRange {
  readonly archiveId: string;
  readonly term: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly fromTime: number;
  readonly toTime: number;
  /** Every key that objects of it are sealed with. */
  readonly keys: readonly LogKey[];
  /** It goes on where that of the archive's term before ends. */
  readonly continues?: boolean;
  /** Later terms go on from an earlier one: what only its primary had was lost with that. */
  readonly isAbandoned?: true;
  /** Moments that commits have twice, as the machine's clock was set back; absent while none are. */
  readonly repeated?: readonly TimeSpan[];
  /** How far it was at some times, oldest first. */
  readonly checkpoints: readonly { readonly at: number; readonly sequence: number }[];
}

/** A service as its copies are to be. */
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
  /** When the first automated backup is due. */
  readonly firstDueAt: number;
  /** When the last automated one was begun with; null before the first. */
  readonly lastAutomatedAt: number | null;
  /** When another image came under the data last; absent while none did. A backup follows. */
  readonly imageChangedAt?: number;
  /** Raised with each backup, so that two who count backups and add to them collide. */
  readonly requests: number;
  /** Ranges of the log, oldest first. */
  readonly log: readonly LogRange[];
  /** What may come back; null while the service is there, and where nothing is left to bring back. */
  readonly deleted: DeletedService | null;
}

/** A service that is gone, with all that brings it back as it was. */
export interface DeletedService {
  readonly at: number;
  readonly until: number;
  /** What it comes back out of; null where only its disk is there. */
  readonly backupId: string | null;
  /** Its machines, off, with their data: it comes back on them as long as they are there. Absent where they went with it. */
  readonly keptNodes?: readonly string[];
  readonly service: ManagedServiceObject;
  readonly users: readonly DatabaseUserObject[];
}

/** For so long a deleted service can come back. */
export const undeleteForMs = 7 * 86_400_000;

/** The archive of a service that has none yet. */
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

/** What applies to a service, whether or not somebody chose it. */
export function settingsOf(serviceId: string, archive: ArchiveObject | undefined): BackupSettings {
  return archive?.spec.settings ?? defaultSettings(serviceId);
}
