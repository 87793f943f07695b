import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { ProgramFailed } from "../../../os/program.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { initdbOptions, syncAll } from "../bootstrap.ts";
import { dataDirectory, platform, program, programsOf } from "../layout.ts";
import { programEnvironment } from "../platform-client.ts";
import { ownTablesSql, template0Sql } from "../platform-sql.ts";
import { statisticsExtension } from "../required-objects.ts";
import { type OfflineData, runSingleUser, singleUserInput } from "../single-user.ts";
import { contentsOf, databasesIn, missingIn } from "./contents.ts";
import { extensionOwnersIn, restoreExtensionOwners } from "./extension-owners.ts";
import { draftOf, exchange, scratchOf } from "./directories.ts";
import { shortageOf, measureCopySpace } from "./copy-space.ts";

const maxReasonChars = 1_500;
const lastLines = 8;

/**
 * Runs pg_upgrade over a copy of the data, which it may change and hard-link from. The data themselves are untouched
 * until the draft is complete. An interrupted upgrade starts over.
 */
export async function upgradeData(
  deps: EngineDeps,
  instance: Instance,
  from: string,
  signal: AbortSignal,
): Promise<void> {
  const { runAsEngine: run } = deps;
  const [draft, scratch] = [draftOf(instance), scratchOf(instance)];
  const copy = join(scratch, "data");
  const oldPrograms = programsOf(instance, from);
  const newPrograms = join(instance.paths.software, "bin");
  await run(["rm", "-rf", draft, scratch], { signal });
  try {
    await run([join(oldPrograms, "postgres"), "--version"], { signal });
  } catch (error) {
    if (!(error instanceof ProgramFailed)) throw error;
    throw new Error(
      `This machine's image has no ${instance.spec.engine} ${from}, which an upgrade of its data needs.`,
      {
        cause: error,
      },
    );
  }
  const shortage = shortageOf(await measureCopySpace(deps, instance, signal));
  if (shortage !== undefined) throw new Error(shortage);
  const config = await writeSettings(run, instance, scratch, signal);
  await run(["cp", "--archive", "--reflink=auto", dataDirectory(instance), copy], { signal });
  const settings = { config_file: config };
  const old = { directory: copy, programs: oldPrograms, settings };
  await prepareCopy(run, instance, old, signal);
  const before = await contentsOf(run, old, signal);
  const extensionOwners = await extensionOwnersIn(run, old, signal);
  await run([program(instance, "initdb"), `--pgdata=${draft}`, ...initdbOptions(instance.spec.version)], { signal });
  const options = `-c config_file=${config}`;
  const argv = [
    program(instance, "pg_upgrade"),
    `--old-bindir=${oldPrograms}`,
    `--new-bindir=${newPrograms}`,
    `--old-datadir=${copy}`,
    `--new-datadir=${draft}`,
    `--old-options=${options}`,
    `--new-options=${options}`,
    `--socketdir=${scratch}`,
    `--username=${platform}`,
    `--jobs=${Math.max(1, instance.spec.vcpu)}`,
    "--link",
    // The disk is synced below, by one syncfs.
    "--no-sync",
  ];
  try {
    // pg_upgrade writes into its working directory. The shell must be its parent: as the first process of the namespace
    // pg_upgrade would adopt the servers that it starts, mistake their exit for the exit of a job, and silently skip
    // databases.
    await run(["/bin/sh", "-c", 'cd "$0" && { "$@"; exit $?; }', scratch, ...argv], {
      env: programEnvironment(),
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new Error(`pg_upgrade failed: ${await reasonsOf(run, draft, error, signal)}`, { cause: error });
  }
  const upgraded = { directory: draft, programs: newPrograms, settings };
  await restoreExtensionOwners(run, upgraded, extensionOwners, signal);
  const missing = missingIn(await contentsOf(run, upgraded, signal), before);
  if (missing !== undefined) throw new Error(`pg_upgrade left out data. ${missing}`);
  await runSingleUser(run, upgraded, { database: "template0", sql: template0Sql() }, signal);
  await runSingleUser(run, upgraded, { database: platform, sql: ownTablesSql() }, signal);
  await run(["rm", "-rf", scratch], { signal });
  await syncAll(run, instance, draft, signal);
  await exchange(instance, from);
  await syncPath(dataDirectory(instance));
}

/** Settings of both servers during pg_upgrade: only the engine's user connects, by a private socket. */
async function writeSettings(
  run: EngineDeps["run"],
  { spec }: Instance,
  scratch: string,
  signal: AbortSignal,
): Promise<string> {
  const sharedMib = Math.max(16, Math.floor(Number(spec.memoryBytes / 1_048_576n) / 8));
  const files = {
    "pg_hba.conf": `local all ${platform} peer map=${platform}\n`,
    "pg_ident.conf": `${platform} /^.*$ ${platform}\n`,
    "postgresql.conf": [
      "listen_addresses = ''",
      `hba_file = '${scratch}/pg_hba.conf'`,
      `ident_file = '${scratch}/pg_ident.conf'`,
      `shared_buffers = '${sharedMib}MB'`,
      "max_connections = 50",
      // A dump locks all tables of a database in one transaction.
      "max_locks_per_transaction = 2048",
      "max_replication_slots = 20",
      "wal_level = replica",
      "lc_messages = 'C'",
      "huge_pages = off",
      "",
    ].join("\n"),
  };
  await run(["mkdir", "-m", "700", scratch], { signal });
  for (const [name, input] of Object.entries(files))
    await run(["/bin/sh", "-c", 'cat > "$0"', join(scratch, name)], { input, signal });
  return join(scratch, "postgresql.conf");
}

/**
 * pg_upgrade refers to files that contain the reasons. Only error lines of logs are returned: the statements next to
 * them may set passwords.
 */
async function reasonsOf(run: EngineDeps["run"], draft: string, error: unknown, signal: AbortSignal): Promise<string> {
  const output = error instanceof ProgramFailed ? error.output : String(error);
  const log = /"([^"]+\.log)"/.exec(output)?.[1] ?? "/dev/null";
  const reasons = ['cat "$0"/pg_upgrade_output.d/*/*.txt 2>/dev/null', 'grep -E "(ERROR|FATAL|error):" "$1"'];
  const reported = await run(["/bin/sh", "-c", `${reasons.join("; ")}; :`, draft, log], { signal });
  const last = output.trim().split("\n").slice(-lastLines);
  return [...last, reported.slice(-maxReasonChars)].join(" ").replace(/\s+/g, " ").trim();
}

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
async function prepareCopy(
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
