import { toBinary } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type {
  DataKey,
  RestoreObservation,
  RestoreSource,
  SourceBackup,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { type InstanceSpec, InstanceSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Instance } from "../engines/engine-driver.ts";
import { recoveryMemoryOf } from "../engines/instance.ts";
import type { JobKey, JobTarget, Report, RestoreJob, StoredBackup } from "./job.ts";
import type { JobComponent } from "./job-component.ts";
import { restoreObservation, type TimedReport } from "./job-observations.ts";
import { readMarker } from "./restore-marker.ts";

/** Restores the data of a machine from the source in its settings, before the engine starts. */
export interface Restores {
  /**
   * True if the data have not been restored from the source in the settings. Throws for data of an unfinished restore
   * if the settings have no source to continue it.
   */
  isPending(spec: InstanceSpec, data: string): Promise<boolean>;
  /** Resolves once the data are restored to the target; throws messages for users. No engine may run. */
  ensure(instance: Instance, signal: AbortSignal): Promise<void>;
  /** The last report, for the observation of the machine; undefined without a restore. */
  observation(): RestoreObservation | undefined;
  recordReport(report: Report): void;
}

export interface RestoresDeps {
  readonly component: JobComponent;
  readonly now: () => number;
  readonly onChange: (isStateChange: boolean) => void;
}

/** The restore of the settings, with its last report. */
interface CurrentRestore {
  readonly restoreId: string;
  readonly latest: TimedReport;
  /** Memory of the machine in bytes at the start of the restore. */
  readonly memoryBytes: bigint;
}

/** True for a failure that a retry would repeat. */
const isPermanent = (code: unknown) =>
  code === "damaged" || code === "absent" || code === "target_not_reached" || code === "plan_too_small";

/** The report of a job that did not finish: only a permanent failure is final. */
const failureOf = (report: Report): Report =>
  isPermanent(report["errorCode"]) ? report : { ...report, state: "failed", errorCode: "retrying" };

export function createRestores({ component, now, onChange }: RestoresDeps): Restores {
  let current: CurrentRestore | undefined;

  /** True if the restore failed for good: one that lacked memory is tried again once the machine has more. */
  function hasFailed({ source, ...spec }: InstanceSpec): boolean {
    if (current === undefined || current.restoreId !== source?.restoreId) return false;
    const code = current.latest.report["errorCode"];
    return isPermanent(code) && !(code === "plan_too_small" && recoveryMemoryOf(spec) > current.memoryBytes);
  }

  function record(report: Report): void {
    if (current === undefined) return;
    const { restoreId, latest } = current;
    const isStateChange = latest.report.state !== report.state;
    current = {
      ...current,
      latest: { report: { ...report, restoreId }, sinceMs: isStateChange ? now() : latest.sinceMs },
    };
    onChange(isStateChange);
  }

  async function isPending({ source }: InstanceSpec, data: string): Promise<boolean> {
    const marker = await readMarker(data);
    if (source !== undefined) return marker?.restoreId !== source.restoreId || !marker.finished;
    if (marker?.finished === false)
      throw new Error("The data belong to an unfinished restore, and the settings name no source to continue it from.");
    return false;
  }

  async function run(instance: Instance, source: RestoreSource, signal: AbortSignal): Promise<Report> {
    // A restore that an earlier agent started continues; one for other settings is stopped.
    const isRunning = current?.restoreId === source.restoreId && !component.isEmpty;
    if (!isRunning) {
      current = {
        restoreId: source.restoreId,
        latest: { report: { state: "fetching" }, sinceMs: now() },
        memoryBytes: recoveryMemoryOf(instance.spec),
      };
      onChange(true);
      await component.stop();
      await component.start(jobOf(instance, source));
    }
    try {
      await component.ended(signal);
    } catch (error) {
      await component.stop();
      throw error;
    }
    return (
      (await component.outcome()) ?? {
        state: "failed",
        errorCode: "retrying",
        error: "The restore ended without an outcome.",
      }
    );
  }

  return {
    isPending,
    async ensure(instance, signal) {
      const { source } = instance.spec;
      if (!(await isPending(instance.spec, instance.paths.data)) || source === undefined) {
        if (source !== undefined && current?.restoreId !== source.restoreId) {
          const { findings = [], warnings = [] } = (await readMarker(instance.paths.data)) ?? {};
          const report = { state: "finished", findings, warnings };
          const memoryBytes = recoveryMemoryOf(instance.spec);
          current = { restoreId: source.restoreId, latest: { report, sinceMs: now() }, memoryBytes };
          onChange(true);
        }
        return;
      }
      if (hasFailed(instance.spec)) throw new Error(`The restore failed: ${String(current?.latest.report["error"])}`);
      const report = await run(instance, source, signal);
      record(report.state === "finished" ? report : failureOf(report));
      if (report.state !== "finished") throw new Error(`The restore failed: ${String(report["error"])}`);
    },
    observation: () => current && restoreObservation(current.latest),
    recordReport: (report) => record(report.state === "failed" ? failureOf(report) : report),
  };
}

const keyOf = (key: DataKey | undefined): JobKey => ({ id: key?.id ?? "", secret: key?.secret ?? "" });

/** Converts a source of the settings to a job's input. */
export function storedBackup(service: string, backup: SourceBackup): StoredBackup {
  const { backupId, attempt, manifestSha256, key } = backup;
  return { location: { service, backup: backupId, attempt }, key: keyOf(key), manifestSha256 };
}

function jobOf({ spec, paths }: Instance, source: RestoreSource): Omit<RestoreJob, "socket" | "outcome"> {
  const { restoreId, serviceId: service, backup, earlier, logs, target } = source;
  if (backup === undefined) throw new Error("The settings name a source without a backup.");
  return {
    kind: "restore",
    restoreId,
    ...storedBackup(service, backup),
    earlier: earlier.map((each) => storedBackup(service, each)),
    logs: logs.map(({ term, firstSequence, lastSequence, keys }) => ({
      term: Number(term),
      firstSequence: Number(firstSequence),
      lastSequence: Number(lastSequence),
      keys: keys.map(keyOf),
    })),
    target: targetOf(target?.target),
    examine: source.examine,
    // Includes password verifiers, since the restore sets the users' passwords.
    spec: Buffer.from(toBinary(InstanceSpecSchema, { ...spec, source: undefined, archive: undefined })).toString(
      "base64",
    ),
    paths,
  };
}

function targetOf(target: NonNullable<RestoreSource["target"]>["target"] | undefined): JobTarget {
  switch (target?.case) {
    case "time":
      return { kind: "time", timeMs: timestampMs(target.value) };
    case "logEnd":
      return { kind: "log_end" };
    case "backupEnd":
    case undefined:
      return { kind: "backup_end" };
  }
}
