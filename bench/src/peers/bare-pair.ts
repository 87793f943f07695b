import { chownSync, mkdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { dyingWithParent, type Launch } from "@holdfast/image/in-image.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { startTemporaryProcess, type TemporaryProcess } from "@holdfast/testing/platform/temporary-process.ts";
import { costOf } from "../support/cost.ts";

/** A primary and its streaming replica without any platform, on two ports of 127.0.0.1, without passwords. */
export interface BarePair {
  readonly primaryPort: number;
  readonly replicaPort: number;
  readonly user: string;
  close(): Promise<void>;
}

const programs = "/usr/lib/postgresql/17/bin";
const user = "holdfast";
/** Settings that differ from the engine beside it; it has no archive. */
const differingSettings =
  /^(port|listen_addresses|unix_socket_directories|data_directory|hba_file|ident_file|archive_\w+|primary_\w+|synchronous_standby_names) /;

/**
 * Servers beside both engines of a service, inside their machines: the same program, settings, certificates and disks.
 */
export async function createBarePair(primaryEngine: number, replicaEngine: number): Promise<BarePair> {
  const [primaryPort = 0, replicaPort = 0] = await freePorts(2);
  const first = besideEngine(primaryEngine, primaryPort);
  const second = besideEngine(replicaEngine, replicaPort);
  const initial = ["--data-checksums", "--encoding=UTF8", "--locale=C.UTF-8", "--auth=trust", `--username=${user}`];
  await first.run("initdb", ...initial, "--locale-provider=builtin", "--builtin-locale=C.UTF-8");
  const primary = await first.start();
  const from = ["--host=127.0.0.1", `--port=${primaryPort}`, `--username=${user}`];
  await second.run(
    "pg_basebackup",
    ...from,
    "--checkpoint=fast",
    "--write-recovery-conf",
    "--create-slot",
    "--slot=bare",
  );
  const replica = await second.start();
  return {
    primaryPort,
    replicaPort,
    user,
    async close() {
      await replica.end("SIGKILL");
      await primary.end("SIGKILL");
      for (const server of [first, second]) server.remove();
    },
  };
}

/** A server on the engine's disk, in the engine's namespaces and as its user. */
function besideEngine(engine: number, port: number) {
  const root = `/proc/${engine}/root`;
  const [uid = 0, gid = 0] = ["Uid", "Gid"].map((name) =>
    Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(readFileSync(`/proc/${engine}/status`, "utf8"))?.[1]),
  );
  const data = join(dirname(readlinkSync(`/proc/${engine}/cwd`)), "bench-pair");
  mkdirSync(`${root}${data}`, { mode: 0o700 });
  chownSync(`${root}${data}`, uid, gid);

  function launch(program: string, ...args: string[]): Launch {
    const enter = ["nsenter", "--target", String(engine), "--mount", "--pid", "--"];
    const asUser = ["setpriv", "--reuid", String(uid), "--regid", String(gid), "--clear-groups", "--pdeathsig", "KILL"];
    return dyingWithParent([...enter, ...asUser, join(programs, program), "-D", data, ...args]);
  }
  /** Current settings of the engine. */
  function settings(): string {
    const file = /config_file=([^\0]+)/.exec(readFileSync(`/proc/${engine}/cmdline`, "utf8"))?.[1] ?? "";
    const lines = readFileSync(`${root}${file}`, "utf8").split("\n");
    const shared = lines.filter((line) => !differingSettings.test(line));
    return [...shared, `port = ${port}`, "listen_addresses = '127.0.0.1'", "unix_socket_directories = ''", ""].join(
      "\n",
    );
  }
  return {
    run: (program: string, ...args: string[]) => costOf(launch(program, ...args)),
    async start(): Promise<TemporaryProcess> {
      writeFileSync(`${root}${data}/postgresql.conf`, settings());
      return startTemporaryProcess(launch("postgres"), /ready to accept/);
    },
    remove: () => rmSync(`/proc/${engine}/root${data}`, { recursive: true, force: true }),
  };
}
