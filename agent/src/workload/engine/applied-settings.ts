import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Applied, InstanceFiles } from "./instance-files.ts";
import type { InstanceStatus } from "./instance-status.ts";
import { currentRejections, acceptedParameters, emptyHistory, rejectChanges } from "./parameter-history.ts";

type Parameters = Readonly<Record<string, string>>;

/**
 * The settings that the engine was started with and the parameters that it rejected. Each change is on disk before an
 * engine depends on it.
 */
export interface AppliedSettings {
  /** Reads the stored settings, once there are any. */
  load(): Promise<void>;
  /** True until the first start of an engine on this machine. */
  readonly isNew: boolean;
  /** Restart count of the running engine, or of these settings if none was started. */
  restartCount(spec: InstanceSpec): bigint;
  /** The parameters of these settings, except that a rejected parameter has its last accepted value. */
  parameters(spec: InstanceSpec): Record<string, string>;
  /** Records, before a start, that the engine is started for this restart count. */
  recordStart(spec: InstanceSpec): Promise<void>;
  /** Records the parameters that the engine runs with. */
  recordRunning(spec: InstanceSpec, parameters: Parameters): Promise<void>;
  /**
   * Records that the engine refused its newest parameters: the values that changed since the last accepted ones are
   * rejected and reported. Resolves with the names of all rejected parameters; undefined if no value had changed.
   */
  reject(
    spec: InstanceSpec,
    tried: Parameters,
    refusal: { readonly message: string; readonly parameter: string | undefined },
  ): Promise<readonly string[] | undefined>;
  /** Reports the settings. Called only once the engine has them, since "running" means that it runs with them. */
  report(spec: InstanceSpec): void;
}

export interface AppliedSettingsDeps {
  readonly files: Pick<InstanceFiles, "loadApplied" | "saveApplied">;
  readonly status: Pick<InstanceStatus, "setSpec">;
}

export function createAppliedSettings({ files, status }: AppliedSettingsDeps): AppliedSettings {
  let applied: Applied | undefined;

  const current = (spec: InstanceSpec): Applied =>
    applied ?? { restartCount: String(spec.restartCount), ...emptyHistory };

  async function save(next: Applied): Promise<void> {
    applied = next;
    await files.saveApplied(next);
  }

  function report(spec: InstanceSpec): void {
    const rejections = Object.entries(currentRejections(spec.parameters, applied ?? emptyHistory));
    status.setSpec(spec, Object.fromEntries(rejections.map(([name, { reason }]) => [name, reason])));
  }

  return {
    async load() {
      applied ??= await files.loadApplied();
    },
    get isNew() {
      return applied === undefined;
    },
    restartCount: (spec) => BigInt(current(spec).restartCount),
    parameters: (spec) => acceptedParameters(spec.parameters, current(spec)),
    recordStart: (spec) => save({ ...current(spec), restartCount: String(spec.restartCount) }),
    recordRunning: (spec, parameters) => save({ ...current(spec), lastAccepted: { ...parameters } }),
    async reject(spec, tried, refusal) {
      const history = rejectChanges(tried, current(spec), refusal);
      if (history === undefined) return undefined;
      await save({ ...current(spec), ...history });
      report(spec);
      return Object.keys(history.rejected);
    },
    report,
  };
}
