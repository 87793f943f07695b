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
import type { JobKey, JobTarget, Report, RestoreJob, StoredBackup } from "./job.ts";
import type { JobComponent } from "./job-component.ts";
import { restoreObservation, type Told } from "./job-observations.ts";
import { readMarker } from "./restore-marker.ts";

/** Has the machine's data be those of its settings' source, before its engine starts. */
export interface Restores {
  /** Is the data not yet what the settings say? Throws for data of an unfinished restore that the settings do not name. */
  isPending(spec: InstanceSpec, data: string): Promise<boolean>;
  /** Resolves when the data is there, whole and at its target; throws with words for users. No engine may run. */
  ensure(instance: Instance, signal: AbortSignal): Promise<void>;
  observation(): RestoreObservation | undefined;
  reported(report: Report): void;
}

export interface RestoresDeps {
  readonly component: JobComponent;
  readonly now: () => number;
  readonly onChange: (isNews: boolean) => void;
}

/** A repetition would end the same way. */
const isFinal = (code: unknown) =>
  code === "damaged" || code === "absent" || code === "target_not_reached" || code === "plan_too_small";

export function createRestores({ component, now, onChange }: RestoresDeps): Restores {
  let current: { readonly restoreId: string; readonly told: Told } | undefined;

  function tell(report: Report): void {
    if (current === undefined) return;
    const { restoreId, told } = current;
    const isNews = told.report.state !== report.state;
    current = { restoreId, told: { report: { ...report, restoreId }, sinceMs: isNews ? now() : told.sinceMs } };
    onChange(isNews);
  }

  async function isPending({ source }: InstanceSpec, data: string): Promise<boolean> {
    const marker = await readMarker(data);
    if (source !== undefined) return marker?.restoreId !== source.restoreId || !marker.finished;
    if (marker?.finished === false)
      throw new Error("The data is that of a restore that did not end: it has no source to go on.");
    return false;
  }

  async function run(instance: Instance, source: RestoreSource, signal: AbortSignal): Promise<Report> {
    // One of an earlier agent goes on; one of other settings is no use.
    const mine = current?.restoreId === source.restoreId && !component.isEmpty;
    if (!mine) {
      current = { restoreId: source.restoreId, told: { report: { state: "fetching" }, sinceMs: now() } };
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
      (await component.outcome()) ?? { state: "failed", errorCode: "retrying", error: "It ended before it was done." }
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
          current = { restoreId: source.restoreId, told: { report, sinceMs: now() } };
          onChange(true);
        }
        return;
      }
      if (current?.restoreId === source.restoreId && isFinal(current.told.report["errorCode"])) {
        throw new Error(`The restore failed: ${String(current.told.report["error"])}`);
      }
      const report = await run(instance, source, signal);
      const code = report["errorCode"];
      tell(
        report.state === "finished" || isFinal(code) ? report : { ...report, state: "failed", errorCode: "retrying" },
      );
      if (report.state !== "finished") throw new Error(`The restore failed: ${String(report["error"])}`);
    },
    observation: () => current && restoreObservation(current.told),
    reported: tell,
  };
}

const keyOf = (key: DataKey | undefined): JobKey => ({ id: key?.id ?? "", secret: key?.secret ?? "" });

/** As a job takes it. */
export function storedBackup(service: string, backup: SourceBackup): StoredBackup {
  const { backupId, attempt, manifestSha256, key } = backup;
  return { place: { service, backup: backupId, attempt }, key: keyOf(key), manifestSha256 };
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
    // It gives the users of the settings their passwords: verifiers go with it.
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
