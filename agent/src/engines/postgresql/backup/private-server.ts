import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ProgramFailed } from "../../../os/program.ts";
import { PlanTooSmall } from "../../backup-facet.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { dataDirectory, platform, program } from "../layout.ts";
import { controlSettings, greatestOf, printSettings, type RequiredSettings } from "../required-settings.ts";
import { codeOf, type Session, withSession } from "../session.ts";

/** The engine over restored data, with no listener but a socket of our own: nobody gets in. */
export interface PrivateServer {
  /** Directory of its socket. */
  readonly socket: string;
  rows: Session["rows"];
  /** The same in another database. */
  inDatabase<T>(database: string, work: (session: Session) => Promise<T>): Promise<T>;
  /** Rejects when it ends by itself, with its last words. */
  readonly ended: Promise<string>;
  /** A clean shutdown, with a checkpoint. */
  stop(): Promise<void>;
  kill(): Promise<void>;
}

/** A server that cuts its sessions is given so long to end. */
const lastWordsMs = 10_000;

export interface PrivateSettings {
  readonly scratch: string;
  readonly recovery: Readonly<Record<string, string>>;
  /** Settings that the log was written under, as far as they are known. */
  readonly log?: RequiredSettings;
}

/** The least that replay begins with: log of an older version does not say what it was written under. */
const usual: RequiredSettings = {
  max_connections: 400,
  max_worker_processes: 64,
  max_wal_senders: 10,
  max_prepared_transactions: 0,
  max_locks_per_transaction: 64,
};

/**
 * Starts it. Hot standby refuses to run with less of some settings than the source had, and the source may have had a larger
 * plan: these are the greatest of the data and the log. Throws PlanTooSmall when they take more memory than the machine has.
 */
export async function startPrivateServer(
  { run, pipe }: EngineDeps,
  instance: Instance,
  { scratch, recovery, log = {} }: PrivateSettings,
  signal: AbortSignal,
): Promise<PrivateServer> {
  const data = dataDirectory(instance);
  const socket = join(scratch, "socket");
  await rm(socket, { recursive: true, force: true });
  await mkdir(socket, { recursive: true, mode: 0o700 });
  const control = await run([program(instance, "pg_controldata"), data], { env: { LC_ALL: "C" }, signal });
  const needed = greatestOf(controlSettings(control), log);
  const config = join(scratch, "postgresql.conf");
  // The most that has room: what replay may need besides is raised when it does.
  const choices = [
    { required: greatestOf(usual, needed), buffersMib: buffersOf(instance) },
    { required: needed, buffersMib: buffersOf(instance) },
    { required: needed, buffersMib: leastBuffersMib },
  ];
  let hasRoom = false;
  for (const { required, buffersMib } of choices) {
    const all = { ...ownSettings(instance, scratch, socket), ...recovery, ...required };
    await writeFile(config, configOf(all, buffersMib));
    hasRoom = await fits(run, instance, config, signal);
    if (hasRoom) break;
  }
  if (!hasRoom) {
    const words = `The log was written under ${printSettings(needed)}: replay takes more memory than this plan has.`;
    throw new PlanTooSmall(`${words} Restore to a larger plan.`);
  }
  await writeFile(join(scratch, "pg_hba.conf"), `local all ${platform} peer map=${platform}\n`);
  await writeFile(join(scratch, "pg_ident.conf"), `${platform} /^.*$ ${platform}\n`);
  const over = new AbortController();
  const server = pipe([program(instance, "postgres"), "-D", data, "-c", `config_file=${config}`], {
    env: { LC_ALL: "C", TZ: "UTC" },
    signal: AbortSignal.any([signal, over.signal]),
  });
  const ended = drain(server.output).then(() => server.ended);
  ended.catch(() => undefined);
  const seen = { ...instance, paths: { ...instance.paths, run: socket } };

  function inDatabase<T>(database: string, work: (session: Session) => Promise<T>): Promise<T> {
    return withSession(seen, signal, work, { database, statementMs: 600_000, lockMs: 60_000 });
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
          if (isUp && !isCut(error)) throw error;
          // Not up yet; or it ends, under a statement too, and then its words are the reason.
          const waitMs = isUp ? lastWordsMs : 50;
          const words = await Promise.race([ended.then((text) => ({ text })), sleep(waitMs, undefined, { signal })]);
          if (words !== undefined) throw new ProgramFailed("postgres", "ended", words.text);
          if (isUp) throw error;
        }
      }
    },
    async stop() {
      server.signal("SIGINT");
      await ended;
    },
    async kill() {
      over.abort();
      await ended.catch(() => undefined);
    },
  };
}

/** The session ended under the statement. */
function isCut(error: unknown): boolean {
  const cut = ["ECONNRESET", "EPIPE", "57P01", "57P02"].includes(codeOf(error));
  return cut || (error instanceof Error && /^Connection (terminated|ended)/.test(error.message));
}

async function drain(output: AsyncIterable<Buffer>): Promise<void> {
  // It logs to its standard error.
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
    max_wal_size: "4GB",
    wal_level: "replica",
    wal_log_hints: "on",
    // Without it the end of recovery removes the times of commits that the data have.
    track_commit_timestamp: "on",
    autovacuum: "off",
    max_logical_replication_workers: "0",
    lc_messages: "C",
    log_min_error_statement: "panic",
    huge_pages: "off",
  };
}

function configOf(settings: Readonly<Record<string, string | number>>, buffersMib: number): string {
  return Object.entries({ ...settings, shared_buffers: `${buffersMib}MB` })
    .map(([name, value]) => `${name} = '${String(value).replaceAll("'", "''")}'\n`)
    .join("");
}

const memoryMibOf = ({ spec }: Instance) => Number(spec.memoryBytes / 1_048_576n);
const leastBuffersMib = 16;
const buffersOf = (instance: Instance) => Math.max(leastBuffersMib, Math.floor(memoryMibOf(instance) / 8));
/** The remainder is for the processes and the agent. */
const sharedShare = 3 / 4;

/** Asks the engine itself how much shared memory it takes under these settings. */
async function fits(run: EngineDeps["run"], instance: Instance, config: string, signal: AbortSignal): Promise<boolean> {
  const ask = ["-D", dataDirectory(instance), "-c", `config_file=${config}`, "-C", "shared_memory_size"];
  try {
    const printed = await run([program(instance, "postgres"), ...ask], { env: { LC_ALL: "C" }, signal });
    const mib = /^(\d+)$/m.exec(printed)?.[1];
    return mib === undefined || Number(mib) <= memoryMibOf(instance) * sharedShare;
  } catch (error) {
    if (error instanceof ProgramFailed && /shared memory size overflows|Cannot allocate/.test(error.output))
      return false;
    throw error;
  }
}
