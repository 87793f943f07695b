import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { replayBuffersMib, replayShare } from "@holdfast/common/engine-catalog/postgresql-sizing.ts";
import { ProgramFailed } from "../../../os/program.ts";
import { PlanTooSmall } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { dataDirectory, platform, program } from "../layout.ts";
import { recoveryMemoryOf } from "../../instance.ts";
import { controlSettings, maxSettings, printSettings, type RequiredSettings } from "../required-settings.ts";
import { codeOf, type Session, withSession } from "../session.ts";

/** A server over restored data that listens on a private socket only. */
export interface PrivateServer {
  /** Directory of the socket. */
  readonly socket: string;
  rows: Session["rows"];
  /** Runs the work in a session of another database. */
  inDatabase<T>(database: string, work: (session: Session) => Promise<T>): Promise<T>;
  /** Resolves with the output of a clean exit; rejects with the last lines if the server fails. */
  readonly ended: Promise<string>;
  /** Shuts down cleanly, with a checkpoint. */
  stop(): Promise<void>;
  kill(): Promise<void>;
}

/** Effects of a driver, and the libraries that its data need wherever they are replayed or read. */
export interface RecoveryDeps extends EngineDeps {
  readonly libraries?: readonly string[];
}

/** Time for a server that closed its sessions to exit. */
const exitGraceMs = 10_000;

export interface PrivateSettings {
  readonly scratch: string;
  readonly recovery: Readonly<Record<string, string>>;
  /** Settings that the log was written under, as far as they are recorded. */
  readonly log?: RequiredSettings;
}

/** Minimum settings of the first attempt, for log that does not record its settings. */
const defaultSettings: RequiredSettings = {
  max_connections: 400,
  max_worker_processes: 64,
  max_wal_senders: 10,
  max_prepared_transactions: 0,
  max_locks_per_transaction: 64,
};

/**
 * Starts the server. Hot standby refuses to run with less of some settings than the source had, and the source may have
 * a larger plan, so each setting is the maximum of the values in the data and the log. Throws PlanTooSmall if they need
 * more memory than the machine has.
 */
export async function startPrivateServer(
  { run, pipe, libraries = [] }: RecoveryDeps,
  instance: Instance,
  { scratch, recovery, log = {} }: PrivateSettings,
  signal: AbortSignal,
): Promise<PrivateServer> {
  const data = dataDirectory(instance);
  const socket = join(scratch, "socket");
  await rm(socket, { recursive: true, force: true });
  await mkdir(socket, { recursive: true, mode: 0o700 });
  const control = await run([program(instance, "pg_controldata"), data], { env: { LC_ALL: "C" }, signal });
  const needed = maxSettings(controlSettings(control), log);
  const config = join(scratch, "postgresql.conf");
  // Take the first choice that fits into memory. Settings that replay turns out to need are raised by the caller.
  const choices = [
    { required: maxSettings(defaultSettings, needed), buffersMib: buffersOf(instance) },
    { required: needed, buffersMib: buffersOf(instance) },
    { required: needed, buffersMib: replayBuffersMib },
  ];
  let requiredMib = 0;
  for (const { required, buffersMib } of choices) {
    const loaded = libraries.length === 0 ? {} : { shared_preload_libraries: libraries.join(",") };
    const all = { ...ownSettings(instance, scratch, socket), ...loaded, ...recovery, ...required };
    await writeFile(config, configOf(all, buffersMib));
    requiredMib = await requiredMemoryMib(run, instance, config, signal);
    if (requiredMib <= machineMibOf(instance)) break;
  }
  if (requiredMib > machineMibOf(instance)) {
    const message = `The log was written under ${printSettings(needed)}: replay needs more memory than this plan has.`;
    throw new PlanTooSmall(
      `${message} Restore to a larger plan, or resize the service to one and start it.`,
      Number.isFinite(requiredMib) ? requiredMib * mib : 0,
    );
  }
  await writeFile(join(scratch, "pg_hba.conf"), `local all ${platform} peer map=${platform}\n`);
  await writeFile(join(scratch, "pg_ident.conf"), `${platform} /^.*$ ${platform}\n`);
  const finished = new AbortController();
  const server = pipe([program(instance, "postgres"), "-D", data, "-c", `config_file=${config}`], {
    env: { LC_ALL: "C", TZ: "UTC" },
    signal: AbortSignal.any([signal, finished.signal]),
  });
  const ended = drain(server.output).then(() => server.ended);
  ended.catch(() => undefined);
  const privateInstance = { ...instance, paths: { ...instance.paths, run: socket } };

  function inDatabase<T>(database: string, work: (session: Session) => Promise<T>): Promise<T> {
    return withSession(privateInstance, signal, work, { database, statementMs: 600_000, lockMs: 60_000 });
  }

  return {
    socket,
    ended,
    inDatabase,
    async rows<R>(sql: string, values?: readonly unknown[]): Promise<R[]> {
      for (;;) {
        try {
          return await inDatabase(platform, (session) => session.rows<R>(sql, values));
        } catch (error) {
          const isUp = !["ENOENT", "ECONNREFUSED", "57P03"].includes(codeOf(error));
          if (isUp && !isSessionEnded(error)) throw error;
          // The server is starting, or exits during a statement; then its output is the reason.
          const waitMs = isUp ? exitGraceMs : 50;
          const message = await Promise.race([ended.then((text) => ({ text })), sleep(waitMs, undefined, { signal })]);
          if (message !== undefined) throw new ProgramFailed("postgres", "ended", message.text);
          if (isUp) throw error;
        }
      }
    },
    async stop() {
      server.signal("SIGINT");
      await ended;
    },
    async kill() {
      finished.abort();
      await ended.catch(() => undefined);
    },
  };
}

/** True if the session ended during the statement. */
function isSessionEnded(error: unknown): boolean {
  const hasEndCode = ["ECONNRESET", "EPIPE", "57P01", "57P02"].includes(codeOf(error));
  return hasEndCode || (error instanceof Error && /^Connection (terminated|ended)/.test(error.message));
}

async function drain(output: AsyncIterable<Buffer>): Promise<void> {
  // Only its standard error is logged.
  for await (const _ of output);
}

function ownSettings({ spec }: Instance, scratch: string, socket: string): Record<string, string> {
  return {
    listen_addresses: "",
    port: String(spec.port),
    unix_socket_directories: socket,
    unix_socket_permissions: "0700",
    hba_file: join(scratch, "pg_hba.conf"),
    ident_file: join(scratch, "pg_ident.conf"),
    hot_standby: "on",
    ...logSpaceOf(Number(spec.storageBytes / 1_048_576n)),
    wal_level: "replica",
    wal_log_hints: "on",
    // If it is off, the end of the recovery removes the commit timestamps in the data.
    track_commit_timestamp: "on",
    autovacuum: "off",
    max_logical_replication_workers: "0",
    lc_messages: "C",
    // The prefix that parseLog reads: a failed restore leaves these lines in the engine's log.
    log_line_prefix: "%n [%p] ",
    log_min_error_statement: "panic",
    huge_pages: "off",
  };
}

/**
 * Settings for the disk space of replayed log, which remains until a restartpoint: a small disk needs many of them. A
 * restartpoint is only possible at a checkpoint in the log.
 */
function logSpaceOf(storageMib: number): Record<string, string> {
  const mib = Math.min(Math.max(Math.floor(storageMib / 32), 32), 4_096);
  return { max_wal_size: `${mib}MB`, min_wal_size: "32MB", checkpoint_completion_target: "0" };
}

function configOf(settings: Readonly<Record<string, string | number>>, buffersMib: number): string {
  return Object.entries({ ...settings, shared_buffers: `${buffersMib}MB` })
    .map(([name, value]) => `${name} = '${String(value).replaceAll("'", "''")}'\n`)
    .join("");
}

const mib = 1_048_576;
const memoryMibOf = ({ spec }: Instance) => Number(spec.memoryBytes) / mib;
/** Memory for the replay: a machine may have more than its plan while it restores. */
const machineMibOf = ({ spec }: Instance) => Number(recoveryMemoryOf(spec)) / mib;
const buffersOf = (instance: Instance) => Math.max(replayBuffersMib, Math.floor(memoryMibOf(instance) / 8));

/**
 * Memory of a machine for the shared memory that the engine computes for these settings; infinite if no machine has as
 * much, 0 if the engine prints none.
 */
async function requiredMemoryMib(
  run: EngineDeps["run"],
  instance: Instance,
  config: string,
  signal: AbortSignal,
): Promise<number> {
  const args = ["-D", dataDirectory(instance), "-c", `config_file=${config}`, "-C", "shared_memory_size"];
  try {
    const printed = await run([program(instance, "postgres"), ...args], { env: { LC_ALL: "C" }, signal });
    return Math.ceil(Number(/^(\d+)$/m.exec(printed)?.[1] ?? 0) / replayShare);
  } catch (error) {
    if (error instanceof ProgramFailed && /shared memory size overflows|Cannot allocate/.test(error.output))
      return Number.POSITIVE_INFINITY;
    throw error;
  }
}
