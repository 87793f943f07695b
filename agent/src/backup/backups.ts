import { join } from "node:path";
import { toBinary } from "@bufbuild/protobuf";
import { inBackground } from "@holdfast/common/background.ts";
import type { BackupPlace } from "@holdfast/common/backup/object-names.ts";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { BackupObservation, DataKey } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "../engines/engine-driver.ts";
import { TaskFailed } from "../task-failed.ts";
import type { Job, Report, StoredBackup } from "./job.ts";
import type { JobComponent } from "./job-component.ts";
import { backupObservation, type Told } from "./job-observations.ts";

/** Backups and verifications of this machine, one at a time. The newest one is remembered, whatever became of it. */
export interface Backups {
  /** Resolves when it has begun; nothing happens when it has before. Throws not_ready while another one is under way. */
  begin(job: NewJob): Promise<void>;
  /** Resolves with what became of it. */
  cancel(backupId: string): Promise<BackupObservation>;
  /** Throws not_ready when it is not the newest one here. */
  inspect(backupId: string): BackupObservation;
  observation(): BackupObservation | undefined;
  /** Whose objects the job that is under way may have. */
  scope(): { readonly case: "backupId" | "verificationId"; readonly value: string } | undefined;
  reported(report: Report): void;
  /** Finds what an earlier agent began. */
  load(): Promise<void>;
  run(signal: AbortSignal): Promise<void>;
}

export interface NewJob {
  /** By which it is known: a backup's, or a verification's. */
  readonly id: string;
  readonly place: BackupPlace;
  readonly key: DataKey;
  readonly instance: Instance;
  readonly work:
    | {
        readonly kind: "backup";
        readonly background: boolean;
        readonly base: StoredBackup | undefined;
        readonly pageMap: boolean;
      }
    | { readonly kind: "verify"; readonly manifestSha256: string };
}

/** Kept on disk; no key is in it. */
interface Remembered {
  readonly id: string;
  readonly attempt: number;
  readonly kind: Job["kind"];
  readonly told: Told;
}

export interface BackupsDeps {
  readonly component: JobComponent;
  readonly stateDir: string;
  readonly now: () => number;
  readonly log: Log;
  readonly onChange: (isNews: boolean) => void;
}

const endingMs = 5_000;
const isOver = (state: string) => state !== "running";

export function createBackups({ component, stateDir, now, log, onChange }: BackupsDeps): Backups {
  const file = join(stateDir, "instance", "backup.json");
  let current: Remembered | undefined;
  /** The backup that was asked to end: the end of its component, however early, is a cancellation and no failure. */
  let cancelled = "";
  let beginning = Promise.resolve();
  let keeping = Promise.resolve();

  /** One write after another: the last one has the newest. What is told of one that ended may come while the next one begins. */
  function keep(): Promise<void> {
    const kept = keeping.then(() => writeDurably(file, JSON.stringify(current)));
    keeping = kept.catch(() => undefined);
    return kept;
  }

  async function tell(report: Report): Promise<void> {
    if (current === undefined || isOver(current.told.report.state)) return;
    const { id: backupId, attempt, told } = current;
    const isNews = told.report.state !== report.state;
    const merged = { ...told.report, ...report, backupId, attempt };
    current = { ...current, told: { report: merged, sinceMs: isNews ? now() : told.sinceMs } };
    // What a full disk does not take is told all the same; the next agent finds what the component left.
    if (isNews) await keep().catch(() => undefined);
    onChange(isNews);
  }

  /** Nothing of it runs any more: it told what came of it, or was interrupted. */
  async function settle(): Promise<void> {
    if (current === undefined || isOver(current.told.report.state) || !component.isEmpty) return;
    const asked = cancelled === current.id;
    const untold: Report = asked
      ? { state: "cancelled", errorCode: "cancelled", error: "It was cancelled." }
      : { state: "failed", errorCode: "interrupted", error: "It ended before it was done." };
    await tell((await component.outcome()) ?? untold);
  }

  function known(backupId: string): Remembered {
    if (current?.id === backupId) return current;
    throw new TaskFailed("not_ready", `this machine knows no backup ${backupId}`, { retryable: false });
  }

  async function begin({ id, place, key, instance, work }: NewJob): Promise<void> {
    await settle();
    if (current?.id === id && current.attempt === place.attempt) return;
    // A component that reported its outcome is about to end.
    if (!component.isEmpty && current !== undefined && isOver(current.told.report.state)) {
      await component.ended(AbortSignal.timeout(endingMs)).catch(() => undefined);
    }
    if (!component.isEmpty) {
      throw new TaskFailed("not_ready", `${current?.id ?? "another backup"} is under way`, { retryable: true });
    }
    const report: Report = { state: "running", backupId: id, attempt: place.attempt };
    current = { id, attempt: place.attempt, kind: work.kind, told: { report, sinceMs: now() } };
    await keep();
    const spec = Buffer.from(toBinary(InstanceSpecSchema, withoutSecrets(instance))).toString("base64");
    const given = { place, key: { id: key.id, secret: key.secret }, spec, paths: instance.paths };
    await component.start(
      work.kind === "backup"
        ? { ...given, kind: "backup", background: work.background, base: work.base, pageMap: work.pageMap }
        : { ...given, kind: "verify", manifestSha256: work.manifestSha256 },
    );
    onChange(true);
  }

  return {
    begin(job) {
      const begun = beginning.then(() => begin(job));
      beginning = begun.catch(() => undefined);
      return begun;
    },
    async cancel(backupId) {
      if (!isOver(known(backupId).told.report.state)) {
        cancelled = backupId;
        await component.stop();
        await settle();
      }
      return backupObservation(known(backupId).told);
    },
    inspect: (backupId) => backupObservation(known(backupId).told),
    observation: () => current && backupObservation(current.told),
    scope: () => current && { case: current.kind === "verify" ? "verificationId" : "backupId", value: current.id },
    reported: (report) => inBackground(log, "report of a backup", tell(report)),
    async load() {
      const bytes = await readIfThere(file);
      if (bytes !== undefined) current = JSON.parse(bytes.toString("utf8")) as Remembered;
    },
    async run(signal) {
      while (!signal.aborted) {
        await component.ended(signal).catch(() => undefined);
        if (signal.aborted) return;
        await settle();
        await component.begun(signal);
      }
    },
  };
}

/** The component needs no verifier and no key but its own. */
function withoutSecrets({ spec }: Instance): Instance["spec"] {
  return { ...spec, users: [], source: undefined, archive: undefined };
}
