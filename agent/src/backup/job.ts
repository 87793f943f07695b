import type { BackupPlace } from "@holdfast/common/backup/object-names.ts";
import type { InstancePaths } from "../engines/engine-driver.ts";

/** What a component is started for, as JSON on its standard input: keys are in it, so it is nowhere else. */
export type Job = BackupJob | VerifyJob | RestoreJob | ArchiveJob;
export type JobKind = Job["kind"];

interface AnyJob {
  /** Where the agent finds the component. */
  readonly socket: string;
  /** Its last report is left there when it ends. */
  readonly outcome: string;
  /** InstanceSpec in base64. */
  readonly spec: string;
  readonly paths: InstancePaths;
}

/** Of DataKey: the secret in base64. */
export interface JobKey {
  readonly id: string;
  readonly secret: string;
}

/** A backup in the store, with the key that opens it. */
export interface StoredBackup {
  readonly place: BackupPlace;
  readonly key: JobKey;
  readonly manifestSha256: string;
}

export interface BackupJob extends AnyJob {
  readonly kind: "backup";
  readonly place: BackupPlace;
  readonly key: JobKey;
  /** What it is an increment since; undefined for one that is whole. */
  readonly base?: StoredBackup | undefined;
  /** Increments may follow it. */
  readonly pageMap: boolean;
  readonly background: boolean;
}

export interface VerifyJob extends AnyJob {
  readonly kind: "verify";
  readonly place: BackupPlace;
  readonly key: JobKey;
  readonly manifestSha256: string;
}

export interface RestoreJob extends AnyJob {
  readonly kind: "restore";
  readonly restoreId: string;
  readonly place: BackupPlace;
  readonly key: JobKey;
  readonly manifestSha256: string;
  /** What it goes on from, the full one first; empty when it is whole. */
  readonly earlier: readonly StoredBackup[];
  readonly logs: readonly JobLog[];
  readonly target: JobTarget;
  /** What was restored is examined. */
  readonly examine: boolean;
}

export interface JobLog {
  readonly term: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
  readonly keys: readonly JobKey[];
}

export type JobTarget =
  | { readonly kind: "backup_end" | "log_end" }
  /** Milliseconds since 1970. */
  | { readonly kind: "time"; readonly timeMs: number };

export interface ArchiveJob extends AnyJob {
  readonly kind: "archive";
  readonly archiveId: string;
  readonly service: string;
  readonly term: number;
  readonly key: JobKey;
  /** Of what the archive has already. */
  readonly earlierKeys: readonly JobKey[];
  readonly idleMs: number;
}

/** What a job tells of itself: the fields of its observation in session.proto, times in milliseconds. */
export type Report = ReportFields & { readonly state: string };
export type ReportFields = Readonly<Record<string, string | number | readonly string[]>>;

/** Lines between agent and component, JSON each. */
export type ToAgent =
  | { readonly report: Report }
  | { readonly need: { readonly id: number; readonly uses: readonly ObjectUseText[] } };

export type ToComponent =
  | { readonly urls: { readonly id: number; readonly grant: UrlGrant } }
  | { readonly refused: { readonly id: number; readonly reason: string } }
  | { readonly key: JobKey }
  /** A base is complete: the log is to reach behind it soon. */
  | { readonly base: true };

export interface ObjectUseText {
  readonly method: ObjectMethod;
  readonly key: string;
}

export type ObjectMethod = "PUT" | "GET" | "HEAD";

export interface UrlGrant {
  /** In the order of the uses. */
  readonly urls: readonly { readonly url: string; readonly headers: Readonly<Record<string, string>> }[];
  readonly expiresAtMs: number;
  readonly endpoint: { readonly addresses: readonly string[]; readonly port: number; readonly trustBundle: string };
}
