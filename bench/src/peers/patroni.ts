import { cp, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import type { TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { asRoot, programDirectory, testProgram, testUid } from "@holdfast/testing/platform/platform-software.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { startTemporaryProcess, type TemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { Client } from "pg";
import type { Made } from "./bare-postgresql.ts";

const patroniVersion = "4.1.5";

/** Patroni from PyPI with a Python that runs inside the node image; fetched once. Returns its directory. */
export async function preparePatroni(): Promise<string> {
  const directory = join(cacheDirectory(process.env), "bench", `patroni-${patroniVersion}`);
  if (existsSync(directory)) return directory;
  const making = `${directory}.making`;
  await rm(making, { recursive: true, force: true });
  await mkdir(join(making, "lib"), { recursive: true });
  const facts = "import sys, sysconfig; print(sys.executable); print(sysconfig.get_path('stdlib'))";
  const { stdout } = await runProgram("/usr/bin/python3", ["-c", facts]);
  const [python = "", library = ""] = stdout.trim().split("\n");
  await cp(python, join(making, "python3"), { dereference: true });
  await cp(library, join(making, "lib", library.slice(library.lastIndexOf("/") + 1)), { recursive: true });
  const packages = [`patroni[etcd3]==${patroniVersion}`, "psycopg[binary]"];
  const venv = join(making, "venv");
  await runProgram("/usr/bin/python3", ["-m", "venv", venv]);
  await runProgram(join(venv, "bin", "pip"), ["install", "-q", "--target", join(making, "site"), ...packages]);
  await rm(venv, { recursive: true });
  await runProgram("chmod", ["-R", "a+rX", making]);
  await rename(making, directory);
  return directory;
}

/** Patroni's time-outs, in seconds. */
export interface PatroniTimeouts {
  readonly ttl: number;
  readonly loop_wait: number;
  readonly retry_timeout: number;
}

/** The default time-outs, and the smallest possible ones. */
export const defaultTimeouts: PatroniTimeouts = { ttl: 30, loop_wait: 10, retry_timeout: 10 };
export const smallestTimeouts: PatroniTimeouts = { ttl: 20, loop_wait: 1, retry_timeout: 3 };

export interface PatroniMember {
  readonly name: string;
  /** Ports of PostgreSQL and of Patroni's REST API, on 127.0.0.1. */
  readonly port: number;
  readonly rest: number;
  /** Data directory: empty, or of a member that does not run any more. */
  readonly directory: string;
}

/** Login without a password. */
export const patroniLogin = { host: "127.0.0.1", user: "postgres", database: "postgres" };

export async function newPatroniMember(name: string): Promise<PatroniMember> {
  const [rest = 0, port = 0] = await freePorts(2);
  return { name, port, rest, directory: programDirectory("bench-patroni") };
}

/**
 * Starts a member of the cluster `scope`; resolves at its first output. Checksums and fsync are on, as with Holdfast.
 */
export async function startPatroni(
  patroni: string,
  etcd: TestEtcd,
  { name, port, rest, directory }: PatroniMember,
  { scope, timeouts }: { scope: string; timeouts: PatroniTimeouts },
): Promise<TemporaryProcess> {
  const postgresql = testProgram("postgresql", "17");
  const config = `
scope: ${scope}
name: ${name}
restapi: {listen: "127.0.0.1:${rest}", connect_address: "127.0.0.1:${rest}"}
etcd3: {host: "127.0.0.1:${etcd.port}"}
bootstrap:
  dcs: ${JSON.stringify({ ...timeouts, postgresql: { use_pg_rewind: true } })}
  initdb: [data-checksums, {encoding: UTF8}, {locale: C}]
  pg_hba: ["host all,replication all 127.0.0.1/32 trust", "local all all trust"]
postgresql:
  listen: "127.0.0.1:${port}"
  connect_address: "127.0.0.1:${port}"
  data_dir: ${directory}/data
  bin_dir: ${join(postgresql.executable("postgres"), "..")}
  pgpass: ${directory}/pgpass
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  parameters: {unix_socket_directories: "${directory}"}
  authentication: {superuser: {username: postgres, password: postgres}, replication: {username: replicator, password: replicator}}
`;
  const file = join(directory, "patroni.yml");
  await writeFile(file, config, { mode: 0o644 });
  const environment = [`PYTHONHOME=${patroni}`, `PYTHONPATH=${patroni}/site`, `HOME=${directory}`, "LC_ALL=C.UTF-8"];
  const argv = ["/usr/bin/env", ...environment, `${patroni}/python3`, "-m", "patroni", file];
  return startTemporaryProcess(postgresql.launch({ argv, uid: testUid, binds: [directory, patroni], asRoot }), /INFO/);
}

/** Time from the start of Patroni on an empty directory to the first write of its primary. */
export async function makePatroni(patroni: string, etcd: TestEtcd): Promise<Made> {
  const member = await newPatroniMember("one");
  const startedAt = performance.now();
  const options = { scope: `bench-${member.port}`, timeouts: smallestTimeouts };
  const running = await startPatroni(patroni, etcd, member, options);
  await firstWrite(member.port);
  const wallMs = performance.now() - startedAt;
  return {
    wallMs,
    async remove() {
      await running.end("SIGTERM");
      await rm(member.directory, { recursive: true, force: true });
    },
  };
}

async function firstWrite(port: number): Promise<void> {
  for (const giveUpAt = Date.now() + 60_000; Date.now() < giveUpAt; ) {
    const client = new Client({ ...patroniLogin, port });
    client.on("error", () => undefined);
    try {
      await client.connect();
      await client.query("CREATE TABLE first (id int)");
      return;
    } catch {
      // Not up yet, or not the primary yet.
      await new Promise((resolve) => setTimeout(resolve, 5));
    } finally {
      await client.end().catch(() => undefined);
    }
  }
  throw new Error("patroni took no write within a minute");
}
