import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { ProgramFailed } from "../../../os/program.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { initdbOptions, syncAll } from "../bootstrap.ts";
import { dataDirectory, platform, program, programsOf } from "../layout.ts";
import { programEnvironment } from "../platform-client.ts";
import { ownTablesSql, template0Sql } from "../platform-sql.ts";
import { runSingle } from "../single-user.ts";
import { contentsOf, missingIn } from "./contents.ts";
import { draftOf, exchange, scratchOf } from "./directories.ts";
import { prepareCopy } from "./prepare-copy.ts";
import { lackOf, roomFor } from "./room.ts";

const longestWords = 1_500;
const lastLines = 8;

/**
 * pg_upgrade over a copy of the data, which it may change and link from: the data themselves are not touched before the draft is whole.
 * Whatever ended it, it begins anew.
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
      `This machine's image has no ${instance.spec.engine} ${from}, which an upgrade of its data takes.`,
      {
        cause: error,
      },
    );
  }
  const lack = lackOf(await roomFor(deps, instance, signal));
  if (lack !== undefined) throw new Error(lack);
  const config = await writeSettings(run, instance, scratch, signal);
  await run(["cp", "--archive", "--reflink=auto", dataDirectory(instance), copy], { signal });
  const settings = { config_file: config };
  const old = { directory: copy, programs: oldPrograms, settings };
  await prepareCopy(run, instance, old, signal);
  const before = await contentsOf(run, old, signal);
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
    // All of the disk is synced at once below.
    "--no-sync",
  ];
  try {
    // It writes into the directory that it is called in. Servers that it starts leave their parent and fall to the namespace's first
    // process. Were it that itself, it would take a server's end for that of a job, and leave databases out without a word.
    await run(["/bin/sh", "-c", 'cd "$0" && { "$@"; exit $?; }', scratch, ...argv], {
      env: programEnvironment(),
      signal,
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new Error(`pg_upgrade failed: ${await wordsOf(run, draft, error, signal)}`, { cause: error });
  }
  const upgraded = { directory: draft, programs: newPrograms, settings };
  const missing = missingIn(await contentsOf(run, upgraded, signal), before);
  if (missing !== undefined) throw new Error(`pg_upgrade left something out. ${missing}`);
  await runSingle(run, upgraded, { database: "template0", sql: template0Sql() }, signal);
  await runSingle(run, upgraded, { database: platform, sql: ownTablesSql() }, signal);
  await run(["rm", "-rf", scratch], { signal });
  await syncAll(run, instance, draft, signal);
  await exchange(instance, from);
  await syncPath(dataDirectory(instance));
}

/** Settings for both servers while pg_upgrade has them: nobody but the engine's user gets in, by a socket of its own. */
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
      // A dump locks every table of a database at once.
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
 * It names files of its own in which the reasons are. Of logs only lines that are errors are told: statements, which may set
 * passwords, are beside them.
 */
async function wordsOf(run: EngineDeps["run"], draft: string, error: unknown, signal: AbortSignal): Promise<string> {
  const output = error instanceof ProgramFailed ? error.output : String(error);
  const log = /"([^"]+\.log)"/.exec(output)?.[1] ?? "/dev/null";
  const reasons = ['cat "$0"/pg_upgrade_output.d/*/*.txt 2>/dev/null', 'grep -E "(ERROR|FATAL|error):" "$1"'];
  const told = await run(["/bin/sh", "-c", `${reasons.join("; ")}; :`, draft, log], { signal });
  const last = output.trim().split("\n").slice(-lastLines);
  return [...last, told.slice(-longestWords)].join(" ").replace(/\s+/g, " ").trim();
}
