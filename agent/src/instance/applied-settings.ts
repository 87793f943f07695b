import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Applied, InstanceFiles } from "./instance-files.ts";
import type { InstanceStatus } from "./instance-status.ts";
import { currentRejections, effectiveParameters, noHistory, rejectChanges } from "./parameter-history.ts";

type Parameters = Readonly<Record<string, string>>;

/** What the engine was started with, and which parameters it would not take; on disk before an engine depends on it. */
export interface AppliedSettings {
  /** Reads what is on disk, once there is something. */
  load(): Promise<void>;
  /** No engine was started here yet. */
  readonly isNew: boolean;
  /** Restart count of the engine that runs, or of these settings where none was started. */
  restartCount(spec: InstanceSpec): bigint;
  /** The parameters of these settings, but the last good value of each that was rejected. */
  parameters(spec: InstanceSpec): Record<string, string>;
  /** An engine is about to be started for all restarts that these settings ask for. */
  starts(spec: InstanceSpec): Promise<void>;
  /** The engine runs with these parameters. */
  runsWith(spec: InstanceSpec, parameters: Parameters): Promise<void>;
  /**
   * The engine refused what it was given last, so the changes since its last good values are rejected, and told as
   * such. Resolves with the names of all that are rejected; undefined when nothing had changed.
   */
  reject(
    spec: InstanceSpec,
    tried: Parameters,
    refusal: { readonly message: string; readonly parameter: string | undefined },
  ): Promise<readonly string[] | undefined>;
  /** Never ahead of what is: "running" under these settings says that the engine took them. */
  tell(spec: InstanceSpec): void;
}

export interface AppliedSettingsDeps {
  readonly files: Pick<InstanceFiles, "loadApplied" | "saveApplied">;
  readonly status: Pick<InstanceStatus, "heldTo">;
}

export function createAppliedSettings({ files, status }: AppliedSettingsDeps): AppliedSettings {
  let applied: Applied | undefined;

  const under = (spec: InstanceSpec): Applied => applied ?? { restartCount: String(spec.restartCount), ...noHistory };

  async function save(next: Applied): Promise<void> {
    applied = next;
    await files.saveApplied(next);
  }

  function tell(spec: InstanceSpec): void {
    const rejections = Object.entries(currentRejections(spec.parameters, applied ?? noHistory));
    status.heldTo(spec, Object.fromEntries(rejections.map(([name, { reason }]) => [name, reason])));
  }

  return {
    async load() {
      applied ??= await files.loadApplied();
    },
    get isNew() {
      return applied === undefined;
    },
    restartCount: (spec) => BigInt(under(spec).restartCount),
    parameters: (spec) => effectiveParameters(spec.parameters, under(spec)),
    starts: (spec) => save({ ...under(spec), restartCount: String(spec.restartCount) }),
    runsWith: (spec, parameters) => save({ ...under(spec), lastGood: { ...parameters } }),
    async reject(spec, tried, refusal) {
      const history = rejectChanges(tried, under(spec), refusal);
      if (history === undefined) return undefined;
      await save({ ...under(spec), ...history });
      tell(spec);
      return Object.keys(history.rejected);
    },
    tell,
  };
}
