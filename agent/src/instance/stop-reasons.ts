import type { DrivenInstance } from "../engines/engine-driver.ts";
import type { Restores } from "../backup/restores.ts";
import type { AppliedSettings } from "./applied-settings.ts";
import type { EngineProcess } from "./engine-process.ts";
import type { DataVersion } from "./data-version.ts";
import type { MemberData } from "./member-data.ts";

/** Why an engine that runs has to end before it can be as wanted. */
export interface StopReason {
  readonly kind: "follow" | "restore" | "version" | "restart";
  readonly logged: string;
  /** For users. */
  readonly words: string;
}

interface Seen {
  readonly process: Pick<EngineProcess, "status">;
  readonly members: Pick<MemberData, "mustStop">;
  readonly restores: Pick<Restores, "isPending">;
  readonly dataVersion: Pick<DataVersion, "mustStop">;
  readonly applied: Pick<AppliedSettings, "restartCount">;
}

/** The first reason that holds; undefined for an engine that may go on. */
export async function whyStop(
  { driver, instance }: DrivenInstance,
  { process, members, restores, dataVersion, applied }: Seen,
): Promise<StopReason | undefined> {
  const { spec, paths } = instance;
  if (await members.mustStop(driver, instance))
    return {
      kind: "follow",
      logged: "engine stops to follow another",
      words: "It is to follow another primary.",
    };
  if (await restores.isPending(spec, paths.data))
    return { kind: "restore", logged: "engine stops for other data", words: "Its data is replaced." };
  if (await dataVersion.mustStop(driver, instance))
    return { kind: "version", logged: "engine stops for another version", words: "It is to be another version." };
  if (spec.restartCount > applied.restartCount(spec) || process.status?.state === "stopping")
    return { kind: "restart", logged: "engine restarts", words: "A restart was asked for." };
  return undefined;
}
