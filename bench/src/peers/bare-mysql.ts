import { spawn } from "node:child_process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { asRoot, programDirectory, testProgram, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { startTemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { type Connection, createConnection } from "mysql2/promise";
import type { Made } from "./bare-postgresql.ts";

const image = testProgram("mysql", "9.7");

export interface BareMysql extends Made {
  readonly directory: string;
  /** Options of MySQL's programs to sign in as root. */
  readonly login: readonly string[];
  open(): Promise<Connection>;
}

/**
 * `mysqld --initialize`, start and a first query without any platform: the programs of the node image, at their
 * defaults, which are as durable as Holdfast's settings. It listens on a Unix socket, without TLS.
 */
export async function makeBareMysql(bufferPoolBytes: number): Promise<BareMysql> {
  const directory = programDirectory("bench-mysql");
  const socketPath = join(directory, "mysql.sock");
  const mysqld = `/usr/sbin/mysqld --no-defaults --datadir=${directory}/data`;
  const run = `--socket=${socketPath} --skip-networking --mysqlx=OFF --secure-file-priv=NULL --innodb-buffer-pool-size=${bufferPoolBytes}`;
  const script = `${mysqld} --initialize-insecure && exec ${mysqld} ${run}`;
  const launch = image.launch({ argv: ["/bin/sh", "-c", script], uid: testUid, binds: [directory], asRoot });
  const open = () => createConnection({ socketPath, user: "root" });
  const startedAt = performance.now();
  const running = await startTemporaryProcess(launch, /ready for connections/);
  const client = await open();
  await client.query("SELECT 1");
  const wallMs = performance.now() - startedAt;
  await client.end();
  return {
    wallMs,
    directory,
    login: ["--no-defaults", `--socket=${socketPath}`, "--user=root"],
    open,
    async remove() {
      await running.end("SIGTERM");
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/**
 * Runs a program of the node image, `mysql` or `mysqldump`, and shell code on the host around it, in which `"$@"` is
 * the program; resolves with the time that it took. Throws if one of both fails.
 */
export async function runMysqlProgram(
  argv: readonly string[],
  shell: string,
  directory: string,
  password = "",
): Promise<number> {
  const { command, args } = image.launch({ argv, uid: testUid, binds: [directory], asRoot });
  const startedAt = performance.now();
  const child = spawn("bash", ["-o", "pipefail", "-c", shell, "bash", command, ...args], {
    cwd: directory,
    env: { ...process.env, MYSQL_PWD: password },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`${argv[0]} ended with code ${code}`);
  return performance.now() - startedAt;
}
