import { ProgramFailed } from "../../../os/program.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { statisticsExtension } from "../required-objects.ts";
import { platform, program } from "../layout.ts";
import { type OfflineData, runSingleUser, singleUserInput } from "../single-user.ts";
import { databasesIn } from "./contents.ts";

const columnVersion = "pg_attver=";

/**
 * Drops the platform's tables, which are created again in the draft. They were created before the data directory's
 * first start, so their OIDs are in the system's range: pg_upgrade does not copy such tables, or finds their OIDs in
 * use.
 */
const dropPlatformObjects = `DO $do$ BEGIN
  IF EXISTS (SELECT FROM pg_extension WHERE extname = '${statisticsExtension}' AND oid < 16384) THEN
    DROP EXTENSION ${statisticsExtension};
  END IF;
  IF current_database() = '${platform}' THEN DROP TABLE ${platform}.heartbeat, ${platform}.instance; END IF;
END $do$`;

/**
 * Removes the version from columns' options, where 17.12 and later minor releases store it: older minor releases of a
 * newer major version reject it.
 */
const dropColumnVersions = `UPDATE pg_catalog.pg_attribute
  SET attoptions = nullif(ARRAY(SELECT o FROM unnest(attoptions) AS o WHERE NOT starts_with(o, '${columnVersion}')), '{}')
  WHERE EXISTS (SELECT FROM unnest(attoptions) AS o WHERE starts_with(o, '${columnVersion}'))`;

/** Recovers the copy if its engine was killed, and removes what pg_upgrade would fail on. */
export async function prepareCopy(
  run: EngineDeps["run"],
  instance: Instance,
  copy: OfflineData,
  signal: AbortSignal,
): Promise<void> {
  const statements = (await supportsColumnVersions(run, instance, signal))
    ? [dropPlatformObjects]
    : [dropPlatformObjects, dropColumnVersions];
  const sql = singleUserInput(statements);
  for (const database of await databasesIn(run, copy, signal))
    await runSingleUser(run, copy, { database, sql }, signal);
}

async function supportsColumnVersions(
  run: EngineDeps["run"],
  instance: Instance,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await run(["grep", "--quiet", "--text", "pg_attver", program(instance, "postgres")], { signal });
    return true;
  } catch (error) {
    if (error instanceof ProgramFailed) return false;
    throw error;
  }
}
