import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ProgramFailed } from "../../../os/program.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { dataDirectory, platform, program } from "../layout.ts";
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
}

/**
 * Starts it. Hot standby refuses to run with fewer slots than the source had, and the source may have had a larger plan: all
 * such settings are those of the data, or larger.
 */
export async function startPrivateServer(
  { run, pipe }: EngineDeps,
  instance: Instance,
  { scratch, recovery }: PrivateSettings,
  signal: AbortSignal,
): Promise<PrivateServer> {
  const data = dataDirectory(instance);
  const socket = join(scratch, "socket");
  await rm(socket, { recursive: true, force: true });
  await mkdir(socket, { recursive: true, mode: 0o700 });
  const control = await run([program(instance, "pg_controldata"), data], { env: { LC_ALL: "C" }, signal });
  const settings = {
    ...ownSettings(instance, scratch, socket),
    ...atLeast(control),
    ...recovery,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`);
  await writeFile(join(scratch, "postgresql.conf"), lines.join(""));
  await writeFile(join(scratch, "pg_hba.conf"), `local all ${platform} peer map=${platform}\n`);
  await writeFile(join(scratch, "pg_ident.conf"), `${platform} /^.*$ ${platform}\n`);
  const over = new AbortController();
  const server = pipe(
    [program(instance, "postgres"), "-D", data, "-c", `config_file=${join(scratch, "postgresql.conf")}`],
    { env: { LC_ALL: "C", TZ: "UTC" }, signal: AbortSignal.any([signal, over.signal]) },
  );
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
  const memoryMib = Number(spec.memoryBytes / 1_048_576n);
  return {
    listen_addresses: "",
    port: String(spec.port),
    unix_socket_directories: socket,
    unix_socket_permissions: "0700",
    hba_file: join(scratch, "pg_hba.conf"),
    ident_file: join(scratch, "pg_ident.conf"),
    hot_standby: "on",
    shared_buffers: `${Math.max(16, Math.floor(memoryMib / 8))}MB`,
    max_wal_size: "4GB",
    wal_level: "replica",
    wal_log_hints: "on",
    autovacuum: "off",
    max_logical_replication_workers: "0",
    lc_messages: "C",
    log_min_error_statement: "panic",
    huge_pages: "off",
  };
}

/** What the data's log was written under, by pg_controldata; with room for what was raised on the way. */
function atLeast(control: string): Record<string, string> {
  const value = (label: string, least: number) => {
    const found = new RegExp(`^${label} setting:\\s+(\\d+)$`, "m").exec(control)?.[1];
    return String(Math.max(least, Number(found ?? 0)));
  };
  return {
    max_connections: value("max_connections", 400),
    max_worker_processes: value("max_worker_processes", 64),
    max_wal_senders: value("max_wal_senders", 10),
    max_prepared_transactions: value("max_prepared_xacts", 0),
    max_locks_per_transaction: value("max_locks_per_xact", 64),
  };
}
