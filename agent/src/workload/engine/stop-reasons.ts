import type { DrivenInstance } from "../../engines/engine-driver.ts";
import type { Restores } from "../../backup/restores.ts";
import type { AppliedSettings } from "./applied-settings.ts";
import type { EngineProcess } from "./engine-process.ts";
import type { DataVersion } from "./data-version.ts";
import type { MemberData } from "./member-data.ts";

/** The reason why a running engine must stop before the machine can match its settings. */
export interface StopReason {
  readonly kind: "follow" | "restore" | "version" | "restart";
  readonly logMessage: string;
  /** Message for users. */
  readonly message: string;
}

interface StopChecks {
  readonly process: Pick<EngineProcess, "status">;
  readonly members: Pick<MemberData, "mustStop">;
  readonly restores: Pick<Restores, "isPending">;
  readonly dataVersion: Pick<DataVersion, "mustStop">;
  readonly applied: Pick<AppliedSettings, "restartCount">;
}

/** Returns the first reason that applies; undefined if the engine may keep running. */
export async function stopReason(
  { driver, instance }: DrivenInstance,
  { process, members, restores, dataVersion, applied }: StopChecks,
): Promise<StopReason | undefined> {
  const { spec, paths } = instance;
  if (await members.mustStop(driver, instance))
    return {
      kind: "follow",
      logMessage: "engine stopped to follow another primary",
      message: "The engine restarts to follow another primary.",
    };
  if (await restores.isPending(spec, paths.data))
    return {
      kind: "restore",
      logMessage: "engine stopped to replace its data",
      message: "The engine stops while its data are replaced.",
    };
  if (await dataVersion.mustStop(driver, instance))
    return {
      kind: "version",
      logMessage: "engine stopped for a version change",
      message: "The engine restarts in another version.",
    };
  if (spec.restartCount > applied.restartCount(spec) || process.status?.state === "stopping")
    return {
      kind: "restart",
      logMessage: "engine stopped for a requested restart",
      message: "A restart was requested.",
    };
  return undefined;
}
