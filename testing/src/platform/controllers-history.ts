import { execFile, spawn } from "node:child_process";
import { chownSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { waitUntil } from "../wait-until.ts";
import { lastLogLines } from "./platform-logs.ts";
import { asRoot, testProgram, testUid } from "./platform-software.ts";

const run = promisify(execFile);

/**
 * PostgreSQL for events and audit, which the controllers of a prepared directory connect to by TLS. Its data and its
 * log are in `directory`; it ends with that.
 */
export async function startControllersHistory(directory: string, prepared: string, address: string): Promise<void> {
  const postgresql = testProgram("postgresql", "17");
  const [data, files] = [join(directory, "history"), join(prepared, "history")];
  mkdirSync(data);
  writeFileSync(join(files, "pg_hba.conf"), "hostssl holdfast holdfast samenet scram-sha-256\n");
  const launch = (argv: readonly string[]) => postgresql.launch({ argv, uid: testUid, binds: [data, files], asRoot });
  const [initdb, postgres] = [postgresql.executable("initdb"), postgresql.executable("postgres")];
  const password = readFileSync(join(prepared, "shared", "history-password"), "utf8");
  const sql = [`create role holdfast login password '${password}'`, "create database holdfast owner holdfast"];
  writeFileSync(join(files, "create.sql"), `${sql.join("\n")}\n`);
  const script = [
    `"${initdb}" --pgdata="$1/data" --username=postgres --auth=trust --no-sync --locale=C`,
    `"${postgres}" --single -D "$1/data" postgres <"$2/create.sql"`,
  ].join(" && ");
  giveTo(testUid, [data, files]);
  const created = launch(["/bin/sh", "-euc", script, "sh", data, files]);
  await run(created.command, [...created.args], { cwd: "/" });
  const options = [
    `listen_addresses=${address}`,
    "port=5432",
    "unix_socket_directories=",
    `hba_file=${join(files, "pg_hba.conf")}`,
    "ssl=on",
    `ssl_cert_file=${join(files, "tls.crt")}`,
    `ssl_key_file=${join(files, "tls.key")}`,
    "fsync=off",
    "shared_buffers=32MB",
    "max_connections=100",
    "logging_collector=off",
  ];
  const server = launch([postgres, "-D", join(data, "data"), ...options.flatMap((each) => ["-c", each])]);
  mkdirSync(join(directory, "log"), { recursive: true });
  const log = openSync(join(directory, "log", "history.log"), "a");
  spawn(server.command, server.args, { cwd: "/", stdio: ["ignore", log, log] });
  await waitUntil("the history accepts connections", () => lastLogLines(directory, 20).includes("ready to accept"));
}

/** Changes the owner of the directories, with their files. */
function giveTo(uid: number, directories: readonly string[]): void {
  for (const directory of directories) {
    chownSync(directory, uid, uid);
    for (const name of readdirSync(directory)) chownSync(join(directory, name), uid, uid);
  }
}
