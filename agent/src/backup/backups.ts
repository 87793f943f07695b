import { join } from "node:path";
import { toBinary } from "@bufbuild/protobuf";
import { inBackground } from "@holdfast/common/background.ts";
import { createMutex } from "@holdfast/common/concurrency/mutex.ts";
import type { BackupLocation } from "@holdfast/common/backup/object-names.ts";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import type { Log } from "@holdfast/common/log.ts";
import { storedFormat } from "@holdfast/common/stored-names.ts";
import type { BackupObservation, DataKey } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "../engines/engine-driver.ts";
import { TaskFailed } from "../task-failed.ts";
import type { Report, StoredBackup } from "./job.ts";
import type { JobComponent } from "./job-component.ts";
import { backupObservation, type TimedReport } from "./job-observations.ts";

/** Takes backups of this machine, one at a time, and stores the newest one with its outcome. */
export interface Backups {
  /** Starts a backup, unless it has started already. Throws "not_ready" while another one is in flight. */
  start(backup: NewBackup): Promise<void>;
  /** Cancels the newest backup and returns its outcome. Throws "not_ready" for any other backup. */
  cancel(backupId: string): Promise<BackupObservation>;
  observation(): BackupObservation | undefined;
  /** The backup whose objects the running component may read and write. */
  scope(): { readonly case: "backupId"; readonly value: string } | undefined;
  recordReport(report: Report): void;
  /** Reads the backup that an earlier agent started. */
  load(): Promise<void>;
  run(signal: AbortSignal): Promise<void>;
}

export interface NewBackup {
  readonly location: BackupLocation;
  readonly key: DataKey;
  readonly instance: Instance;
  readonly background: boolean;
  readonly base: StoredBackup | undefined;
  readonly pageMap: boolean;
}

/** The newest backup, in a file on disk. It has no key. */
interface CurrentBackup {
  readonly id: string;
  readonly attempt: number;
  readonly latest: TimedReport;
}

const currentFormat = storedFormat<CurrentBackup>({ latest: "told" });

export interface BackupsDeps {
  readonly component: JobComponent;
  readonly stateDir: string;
  readonly now: () => number;
  readonly log: Log;
  readonly onChange: (isStateChange: boolean) => void;
}

const exitTimeoutMs = 5_000;
const isFinished = (state: string) => state !== "running";

export function createBackups({ component, stateDir, now, log, onChange }: BackupsDeps): Backups {
  const file = join(stateDir, "instance", "backup.json");
  let current: CurrentBackup | undefined;
  /** Id of the backup that a task canceled, whose end then counts as a cancellation instead of a failure. */
  let canceledId = "";
  const starting = createMutex();
  const saving = createMutex();

  /**
   * Serializes writes, so that the last one has the newest state: a late report may arrive while the next backup
   * starts.
   */
  function save(): Promise<void> {
    return saving(async () => {
      if (current !== undefined) await writeDurably(file, currentFormat.format(current));
    });
  }

  async function record(report: Report): Promise<void> {
    if (current === undefined || isFinished(current.latest.report.state)) return;
    const { id: backupId, attempt, latest } = current;
    const isStateChange = latest.report.state !== report.state;
    const merged = { ...latest.report, ...report, backupId, attempt };
    current = { ...current, latest: { report: merged, sinceMs: isStateChange ? now() : latest.sinceMs } };
    // A full disk does not stop the report. The next agent reads the outcome that the component left.
    if (isStateChange) await save().catch(() => undefined);
    onChange(isStateChange);
  }

  /** Records the outcome of a backup whose component has ended, or that it was interrupted. */
  async function settle(): Promise<void> {
    if (current === undefined || isFinished(current.latest.report.state) || !component.isEmpty) return;
    const withoutOutcome: Report =
      canceledId === current.id
        ? { state: "cancelled", errorCode: "cancelled", error: "It was canceled." }
        : { state: "failed", errorCode: "interrupted", error: "It ended before it was done." };
    await record((await component.outcome()) ?? withoutOutcome);
  }

  function find(backupId: string): CurrentBackup {
    if (current?.id === backupId) return current;
    throw new TaskFailed("not_ready", `This machine has no backup ${backupId}.`, { retryable: false });
  }

  async function start({ location, key, instance, background, base, pageMap }: NewBackup): Promise<void> {
    const { backup: id, attempt } = location;
    await settle();
    if (current?.id === id && current.attempt === attempt) return;
    // A component that reported its outcome is about to end.
    if (!component.isEmpty && current !== undefined && isFinished(current.latest.report.state)) {
      await component.ended(AbortSignal.timeout(exitTimeoutMs)).catch(() => undefined);
    }
    if (!component.isEmpty) {
      throw new TaskFailed("not_ready", `The backup ${current?.id ?? ""} is in progress.`, { retryable: true });
    }
    current = {
      id,
      attempt,
      latest: { report: { state: "running", backupId: id, attempt }, sinceMs: now() },
    };
    await save();
    await component.start({
      kind: "backup",
      location,
      key: { id: key.id, secret: key.secret },
      spec: Buffer.from(toBinary(InstanceSpecSchema, withoutSecrets(instance))).toString("base64"),
      paths: instance.paths,
      background,
      base,
      pageMap,
    });
    onChange(true);
  }

  return {
    start: (backup) => starting(() => start(backup)),
    async cancel(backupId) {
      if (!isFinished(find(backupId).latest.report.state)) {
        canceledId = backupId;
        await component.stop();
        await settle();
      }
      return backupObservation(find(backupId).latest);
    },
    observation: () => current && backupObservation(current.latest),
    scope: () => current && { case: "backupId", value: current.id },
    recordReport: (report) => inBackground(log, "report of a backup", record(report)),
    async load() {
      const bytes = await readIfExists(file);
      if (bytes !== undefined) current = currentFormat.parse(bytes.toString("utf8"));
    },
    async run(signal) {
      while (!signal.aborted) {
        await component.ended(signal).catch(() => undefined);
        if (signal.aborted) return;
        await settle();
        await component.started(signal);
      }
    },
  };
}

/** The settings without verifiers and keys: the component gets its own key with the job. */
function withoutSecrets({ spec }: Instance): Instance["spec"] {
  return { ...spec, users: [], source: undefined, archive: undefined };
}
