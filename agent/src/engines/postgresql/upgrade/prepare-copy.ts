import { ProgramFailed } from "../../../os/program.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { statisticsExtension } from "../additions.ts";
import { platform, program } from "../layout.ts";
import { type ClosedData, runSingle, singleInput } from "../single-user.ts";
import { databasesIn } from "./contents.ts";

const columnVersion = "pg_attver=";

/**
 * pg_upgrade carries no table over whose number is below those of users, and may not find the number free: such are the platform's own,
 * which are made before a data directory's first start. They go, and come anew with the draft.
 */
const dropOwn = `DO $do$ BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = '${statisticsExtension}' AND oid < 16384) THEN
    DROP EXTENSION ${statisticsExtension};
  END IF;
  IF current_database() = '${platform}' THEN DROP TABLE ${platform}.heartbeat, ${platform}.instance; END IF;
END $do$`;

/** From 17.12 on a column's version is among its options. A newer engine of an earlier day does not know the option; data have columns without. */
const dropColumnVersions = `UPDATE pg_catalog.pg_attribute
  SET attoptions = nullif(ARRAY(SELECT o FROM unnest(attoptions) AS o WHERE NOT starts_with(o, '${columnVersion}')), '{}')
  WHERE EXISTS (SELECT FROM unnest(attoptions) AS o WHERE starts_with(o, '${columnVersion}'))`;

/** Recovers the copy where its engine was killed, and takes out of it what pg_upgrade would stumble over. */
export async function prepareCopy(
  run: EngineDeps["run"],
  instance: Instance,
  copy: ClosedData,
  signal: AbortSignal,
): Promise<void> {
  const statements = (await knowsColumnVersions(run, instance, signal)) ? [dropOwn] : [dropOwn, dropColumnVersions];
  const sql = singleInput(statements);
  for (const database of await databasesIn(run, copy, signal)) await runSingle(run, copy, { database, sql }, signal);
}

async function knowsColumnVersions(run: EngineDeps["run"], instance: Instance, signal: AbortSignal): Promise<boolean> {
  try {
    await run(["grep", "--quiet", "--text", "pg_attver", program(instance, "postgres")], { signal });
    return true;
  } catch (error) {
    if (error instanceof ProgramFailed) return false;
    throw error;
  }
}
