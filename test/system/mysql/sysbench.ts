import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { withHosts } from "@holdfast/testing/engines/client-files.ts";
import type { TestImage } from "@holdfast/testing/engines/test-image.ts";

const tables = 2;
/** Each transaction inserts as many rows as it deletes, so each table always has this number of rows. */
export const rowsOfTable = 5_000;
export const tableNames: readonly string[] = Array.from({ length: tables }, (_, at) => `sbtest${at + 1}`);
/** Deadlocks and timeouts of row locks, which are part of the load. Every other error ends the run. */
const ignoredErrors = [1213, 1205];
const printedLines = 20;

export interface SysbenchTarget {
  readonly host: string;
  readonly port: number;
  readonly password: string;
  /** Directory with the names in `hosts` and the files of `writeCertificates`. */
  readonly directory: string;
}

export interface Sysbench {
  /** Transactions of the current run that were reported; 0 until a run after an error has its first ones. */
  transactions(): number;
  /** Number of runs that ended with an error. */
  failedRuns(): number;
  /** The last lines that were printed. */
  describe(): string;
  stop(): Promise<void>;
}

function commandLine({ host, port, password, directory }: SysbenchTarget, verb: string, options: readonly string[]) {
  const server = [`--mysql-host=${host}`, `--mysql-port=${port}`, "--mysql-user=app_user", "--mysql-db=defaultdb"];
  const login = [`--mysql-password=${password}`, "--mysql-ssl=on"];
  const size = [`--tables=${tables}`, `--table-size=${rowsOfTable}`];
  const argv = ["/usr/bin/sysbench", "oltp_read_write", ...server, ...login, ...size, ...options, verb];
  // sysbench has fixed names of the certificates, in its working directory.
  return withHosts(join(directory, "hosts"), ["/bin/sh", "-c", 'cd "$0" && exec "$@"', directory, ...argv]);
}

/**
 * Writes the certificates that sysbench requires: the authority's, and one of a client with its key. The service
 * requests none from clients, but sysbench reads one, so it is a node's.
 */
export function writeCertificates(directory: string, authority: string, nodeTls: string): void {
  writeFileSync(join(directory, "cacert.pem"), authority);
  for (const [of, name] of [
    ["server.crt", "client-cert.pem"],
    ["server.key", "client-key.pem"],
  ] as const)
    writeFileSync(join(directory, name), readFileSync(join(nodeTls, of)), { mode: 0o644 });
}

/** Creates the tables. */
export async function prepareSysbench(image: TestImage, target: SysbenchTarget): Promise<void> {
  await image.run(commandLine(target, "prepare", []), [target.directory]);
}

/**
 * Runs transactions in four sessions until it is stopped, and starts sysbench again when it ends. A lost session ends
 * it: Debian's sysbench 1.0.20 cannot reconnect. It closes the handle of MariaDB's client library and connects with it,
 * which is a segmentation fault (`mysql_drv_reconnect` in `drv_mysql.c`).
 */
export function startSysbench(image: TestImage, target: SysbenchTarget): Sysbench {
  const options = ["--threads=4", "--time=0", "--report-interval=1"];
  const errors = `--mysql-ignore-errors=${ignoredErrors.join()}`;
  const { command, args } = image.command(commandLine(target, "run", [...options, errors]), [target.directory]);
  const lines: string[] = [];
  let transactions = 0;
  let failedRuns = 0;
  const stopped = new AbortController();

  async function run(): Promise<void> {
    transactions = 0;
    const child = spawn(command, args, { cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
    const kill = () => child.kill("SIGKILL");
    stopped.signal.addEventListener("abort", kill);
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on("line", (line) => {
        lines.push(line);
        if (lines.length > printedLines) lines.shift();
        transactions += Number(/tps: ([\d.]+)/.exec(line)?.[1] ?? 0);
      });
    await once(child, "close");
    stopped.signal.removeEventListener("abort", kill);
  }

  async function runAgain(): Promise<void> {
    while (!stopped.signal.aborted) {
      await run();
      if (!stopped.signal.aborted) failedRuns += 1;
    }
  }

  const ended = runAgain();
  return {
    transactions: () => transactions,
    failedRuns: () => failedRuns,
    describe: () => `sysbench, ${failedRuns} failed runs:\n${lines.join("\n")}`,
    async stop() {
      stopped.abort();
      await ended;
    },
  };
}
