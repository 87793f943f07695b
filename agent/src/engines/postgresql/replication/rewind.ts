import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import type { StoppedAt } from "../../replication-facet.ts";
import { dataDirectory, program, programsOf } from "../layout.ts";
import { keyFiles, takeKey } from "../own-key.ts";
import { versionOf } from "../upgrade/directories.ts";
import { standbySignal } from "./copy.ts";
import { primaryConninfo } from "./members.ts";

const environment = { LC_ALL: "C", TZ: "UTC" };

/** Nothing is changed where the primary has all of this log. An engine that was killed is recovered first. */
export async function rewind(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const { runAsEngine: run } = deps;
  const conninfo = primaryConninfo(instance);
  if (conninfo === undefined) throw new Error("a primary follows nobody");
  const directory = dataDirectory(instance);
  await takeKey(deps, keyFiles(instance), signal);
  const options = [
    `--target-pgdata=${directory}`,
    `--source-server=${conninfo}`,
    `--config-file=${instance.paths.config}/postgresql.conf`,
  ];
  await run([program(instance, "pg_rewind"), ...options], { env: environment, signal });
  await run(["touch", join(directory, standbySignal)], { signal });
  await syncPath(directory);
}

/**
 * Where the checkpoint of an orderly shutdown begins: nothing comes after it. The settings may name a version already that comes with the
 * next image: the data are read by a program of their own.
 */
export async function stoppedAt(
  { run }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<StoppedAt | undefined> {
  const version = (await versionOf(instance)) ?? instance.spec.version;
  const told = await run([join(programsOf(instance, version), "pg_controldata"), dataDirectory(instance)], {
    env: environment,
    signal,
  });
  if (!/^Database cluster state:\s+shut down$/m.test(told)) return undefined;
  const position = /^Latest checkpoint location:\s+(\S+)$/m.exec(told)?.[1];
  return position === undefined ? undefined : { position };
}
