import type { BackupLocation } from "@holdfast/common/backup/object-names.ts";
import type { InstancePaths } from "../engines/engine-driver.ts";

/** The input of a component, as JSON on its standard input. It has keys, so it is stored nowhere else. */
export type Job = BackupJob | RestoreJob | ArchiveJob;

/** Input that every job has. */
interface AnyJob {
  /** Path of the socket on which the component listens for the agent. */
  readonly socket: string;
  /** Path of the file to which it writes its last report. */
  readonly outcome: string;
  /** InstanceSpec message in base64. */
  readonly spec: string;
  readonly paths: InstancePaths;
}

/** A DataKey; its secret is in base64. */
export interface JobKey {
  readonly id: string;
  readonly secret: string;
}

/** A stored backup with the key that decrypts it. */
export interface StoredBackup {
  readonly location: BackupLocation;
  readonly key: JobKey;
  readonly manifestSha256: string;
}

export interface BackupJob extends AnyJob {
  readonly kind: "backup";
  readonly location: BackupLocation;
  readonly key: JobKey;
  /** Base of an incremental backup; undefined for a full one. */
  readonly base?: StoredBackup | undefined;
  /** True if increments may follow, so that page digests are stored. */
  readonly pageMap: boolean;
  readonly background: boolean;
}

export interface RestoreJob extends AnyJob {
  readonly kind: "restore";
  readonly restoreId: string;
  readonly location: BackupLocation;
  readonly key: JobKey;
  readonly manifestSha256: string;
  /** The backups that an incremental one builds on, the full one first; empty for a full backup. */
  readonly earlier: readonly StoredBackup[];
  readonly logs: readonly JobLog[];
  readonly target: JobTarget;
  /** True if the restored data are examined. */
  readonly examine: boolean;
}

/** Log of one term; the objects from the first to the last sequence number may be read. */
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
  /** Keys of the objects that the archive has already. */
  readonly earlierKeys: readonly JobKey[];
  readonly idleMs: number;
}

/** Progress of a job: the fields of its observation in session.proto, with times in milliseconds since 1970. */
export type Report = ReportFields & { readonly state: string };
export type ReportFields = Readonly<Record<string, string | number | readonly string[]>>;

/** Messages between agent and component, one JSON object a line. */
export type ToAgent =
  | { readonly report: Report }
  /** Requests presigned URLs. */
  | { readonly need: { readonly id: number; readonly uses: readonly ObjectUseJson[] } };

export type ToComponent =
  /** The URLs of a request. */
  | { readonly urls: { readonly id: number; readonly grant: UrlGrant } }
  /** No controller can sign the URLs now; the component repeats the request. */
  | { readonly refused: { readonly id: number; readonly reason: string } }
  /** A new data key of the archive. */
  | { readonly key: JobKey }
  /** A base backup is complete: the archive writes its next object early, so that the backup can be restored. */
  | { readonly base: true };

/** An ObjectUse message as JSON. */
export interface ObjectUseJson {
  readonly method: ObjectMethod;
  readonly key: string;
}

export type ObjectMethod = "PUT" | "GET" | "HEAD";

/** Presigned URLs, and the addresses of their host. */
export interface UrlGrant {
  /** Signed URLs, in the order of the requested uses. */
  readonly urls: readonly { readonly url: string; readonly headers: Readonly<Record<string, string>> }[];
  readonly expiresAtMs: number;
  readonly endpoint: { readonly addresses: readonly string[]; readonly port: number; readonly trustBundle: string };
}
