import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { promisify } from "node:util";
import { asRoot, programDirectory, testProgram, testUid } from "../platform/platform-software.ts";
import { freePorts } from "../platform/free-ports.ts";
import { startTemporaryProcess } from "../platform/temporary-process.ts";

const run = promisify(execFile);

/** A real PostgreSQL 17 without fsync, for one test file. */
export interface TestPostgresql {
  /** `postgres://postgres@127.0.0.1:<port>/postgres`: superuser, trusted, no TLS; unchanged by restarts. */
  readonly url: string;
  readonly port: number;
  /** Stops the engine gracefully and removes its data. */
  stop(): Promise<void>;
  /** Kills the engine and all of its backends (SIGKILL); its data remain. */
  kill(): Promise<void>;
  /** Starts the engine again after `kill`, with its data and port. */
  start(): Promise<void>;
  /** Stops the engine gracefully and starts it again. */
  restart(): Promise<void>;
  /** Sends the postmaster a signal, such as SIGSTOP. */
  signal(signal: NodeJS.Signals): void;
}

/** Resolves when the engine accepts connections. `settings` are `name=value` of postgresql.conf. */
export async function startTestPostgresql(settings: readonly string[] = []): Promise<TestPostgresql> {
  const postgresql = testProgram("postgresql", "17");
  const directory = programDirectory("holdfast-postgresql");
  const data = `${directory}/data`;
  const launch = (argv: readonly string[]) => postgresql.launch({ argv, uid: testUid, binds: [directory], asRoot });

  const initdb = launch([
    postgresql.executable("initdb"),
    `--pgdata=${data}`,
    "--no-sync",
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
  ]);
  await run(initdb.command, initdb.args, { cwd: "/" });

  const [port] = await freePorts(1);
  if (port === undefined) throw new Error("no free port");
  const options = [
    `port=${port}`,
    "listen_addresses=127.0.0.1",
    `unix_socket_directories=${directory}`,
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "shared_buffers=16MB",
    "logging_collector=off",
    ...settings,
  ].flatMap((setting) => ["-c", setting]);
  const command = launch([postgresql.executable("postgres"), "-D", data, ...options]);
  const begin = () => startTemporaryProcess(command, /ready to accept connections/);
  let running = await begin();
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    async stop() {
      await running.end("SIGINT");
      await rm(directory, { recursive: true, force: true });
    },
    kill: () => running.end("SIGKILL"),
    async start() {
      running = await begin();
    },
    async restart() {
      await running.end("SIGINT");
      running = await begin();
    },
    signal: (signal) => running.signal(signal),
  };
}
