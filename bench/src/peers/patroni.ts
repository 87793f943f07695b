import { execFile } from "node:child_process";
import { cp, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory } from "@holdfast/image/node-image.ts";
import type { TestEtcd } from "@holdfast/test/support/etcd.ts";
import { asRoot, programDirectory, testProgram, testUid } from "@holdfast/test/support/platform-software.ts";
import { freePorts } from "@holdfast/test/support/free-ports.ts";
import { startTemporaryProcess } from "@holdfast/test/support/temporary-process.ts";
import { Client } from "pg";
import type { Made } from "./bare-postgresql.ts";

const run = promisify(execFile);
const patroniVersion = "4.1.5";

/** Patroni out of PyPI with a Python that runs inside the node image; fetched once. Returns its directory. */
export async function preparePatroni(): Promise<string> {
  const directory = join(cacheDirectory(process.env), "bench", `patroni-${patroniVersion}`);
  if (existsSync(directory)) return directory;
  const making = `${directory}.making`;
  await rm(making, { recursive: true, force: true });
  await mkdir(join(making, "lib"), { recursive: true });
  const facts = "import sys, sysconfig; print(sys.executable); print(sysconfig.get_path('stdlib'))";
  const { stdout } = await run("/usr/bin/python3", ["-c", facts]);
  const [python = "", library = ""] = stdout.trim().split("\n");
  await cp(python, join(making, "python3"), { dereference: true });
  await cp(library, join(making, "lib", library.slice(library.lastIndexOf("/") + 1)), { recursive: true });
  const packages = [`patroni[etcd3]==${patroniVersion}`, "psycopg[binary]"];
  const venv = join(making, "venv");
  await run("/usr/bin/python3", ["-m", "venv", venv]);
  await run(join(venv, "bin", "pip"), ["install", "-q", "--target", join(making, "site"), ...packages]);
  await rm(venv, { recursive: true });
  await run("chmod", ["-R", "a+rX", making]);
  await rename(making, directory);
  return directory;
}

/** From the start of Patroni on an empty directory to the first write that its primary takes; checksums and fsync on. */
export async function makePatroni(patroni: string, etcd: TestEtcd): Promise<Made> {
  const postgresql = testProgram("postgresql", "17");
  const directory = programDirectory("bench-patroni");
  const [rest = 0, port = 0] = await freePorts(2);
  const config = `
scope: bench-${port}
name: one
restapi: {listen: "127.0.0.1:${rest}", connect_address: "127.0.0.1:${rest}"}
etcd3: {host: "127.0.0.1:${etcd.port}"}
bootstrap:
  dcs: {ttl: 20, loop_wait: 1, retry_timeout: 3, postgresql: {use_pg_rewind: true}}
  initdb: [data-checksums, {encoding: UTF8}, {locale: C}]
  pg_hba: ["host all all 127.0.0.1/32 trust", "local all all trust"]
postgresql:
  listen: "127.0.0.1:${port}"
  connect_address: "127.0.0.1:${port}"
  data_dir: ${directory}/data
  bin_dir: ${join(postgresql.executable("postgres"), "..")}
  parameters: {unix_socket_directories: "${directory}"}
  authentication: {superuser: {username: postgres, password: postgres}, replication: {username: replicator, password: replicator}}
`;
  const file = join(directory, "patroni.yml");
  await writeFile(file, config, { mode: 0o644 });
  const environment = [`PYTHONHOME=${patroni}`, `PYTHONPATH=${patroni}/site`, `HOME=${directory}`, "LC_ALL=C.UTF-8"];
  const argv = ["/usr/bin/env", ...environment, `${patroni}/python3`, "-m", "patroni", file];
  const launch = postgresql.launch({ argv, uid: testUid, binds: [directory, patroni], asRoot });
  const begun = performance.now();
  const running = await startTemporaryProcess(launch, /INFO/);
  await firstWrite(port);
  const wallMs = performance.now() - begun;
  return {
    wallMs,
    async remove() {
      await running.end("SIGTERM");
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function firstWrite(port: number): Promise<void> {
  for (const giveUpAt = Date.now() + 60_000; Date.now() < giveUpAt; ) {
    const client = new Client({
      host: "127.0.0.1",
      port,
      user: "postgres",
      password: "postgres",
      database: "postgres",
    });
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
