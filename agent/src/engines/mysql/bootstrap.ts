import { existsSync } from "node:fs";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import { componentsSql } from "./components.ts";
import {
  dataDirectory,
  type DataPath,
  engineDirectory,
  platform,
  secretFile,
  serverProgram,
  temporaryDirectory,
} from "./layout.ts";
import { identifier, literal } from "./session.ts";

/**
 * Creates the data directory with a new server identity, the platform's account as the only one and the platform's
 * database. The directory appears complete or not at all; an interrupted one is created again.
 */
export async function bootstrap(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const { runAsEngine: run, randomBytes } = deps;
  const directory = engineDirectory(instance);
  if (existsSync(directory)) return;
  const base = `${instance.paths.data}/mysql.partial`;
  const draft = { paths: { data: base } };
  const secret = randomBytes(32).toString("hex");
  await run(["rm", "-rf", base], { signal });
  await run(["mkdir", "-m", "0750", base], { signal });
  await prepareDirectory(deps, draft, secret, signal);
  await initialize(deps, instance, draft, { sql: platformSql(secret), hasTimeZones: true }, signal);
  await run(["sync", "--file-system", base], { signal });
  await run(["mv", engineDirectory(draft), directory], { signal });
  await run(["rm", "-rf", base], { signal });
  await syncPath(instance.paths.data);
}

/** Creates the engine's directories of a data path, and the file with the password of the platform's account. */
export async function prepareDirectory(
  { runAsEngine: run }: EngineDeps,
  data: DataPath,
  secret: string,
  signal: AbortSignal,
): Promise<void> {
  await run(["mkdir", "-m", "0750", engineDirectory(data), temporaryDirectory(data)], { signal });
  await run(["tee", secretFile(data)], { input: secret, signal });
  // Readable by the engine's group, of which the agent is a member.
  await run(["chmod", "0640", secretFile(data)], { signal });
}

export interface FirstContents {
  readonly sql: string;
  /** True for data of users, whose statements may name time zones. */
  readonly hasTimeZones: boolean;
}

/** Appends the statements that load the time zones of the image to a file. */
const timeZonesScript = '{ echo "USE mysql;"; "$1" "$2"; } >> "$3"';

/** Creates the engine's own files, and runs the statements on them. */
export async function initialize(
  { runAsEngine: run }: EngineDeps,
  { paths }: Pick<Instance, "paths">,
  data: DataPath,
  { sql, hasTimeZones }: FirstContents,
  signal: AbortSignal,
): Promise<void> {
  const statements = join(engineDirectory(data), "first.sql");
  await run(["install", "-m", "0600", "/dev/null", statements], { signal });
  await run(["tee", statements], { input: sql, signal });
  if (hasTimeZones) {
    const source = [join(paths.software, "bin/mysql_tzinfo_to_sql"), join(paths.software, "share/zoneinfo")];
    await run(["sh", "-c", timeZonesScript, "sh", ...source, statements], { signal });
  }
  const options = [
    "--no-defaults",
    "--initialize-insecure",
    `--basedir=${paths.software}`,
    `--datadir=${dataDirectory(data)}`,
    // Without this option the server writes into the directory that TMPDIR names.
    `--tmpdir=${temporaryDirectory(data)}`,
    `--init-file=${statements}`,
    "--auto-generate-certs=OFF",
    "--caching-sha2-password-auto-generate-rsa-keys=OFF",
    "--skip-log-bin",
    "--innodb-buffer-pool-size=32M",
  ];
  await run([serverProgram(paths.software), ...options], { signal });
  await run(["rm", statements], { signal });
}

/**
 * Statements for a new data directory, one per line. The platform's account has every privilege including SYSTEM_USER,
 * so no user can change it or end its sessions. Its own session limit replaces the parameter `max_user_connections`.
 */
function platformSql(secret: string): string {
  const platformAccount = `${literal(platform)}@'localhost'`;
  return [
    `CREATE USER ${platformAccount} IDENTIFIED WITH caching_sha2_password BY ${literal(secret)} WITH MAX_USER_CONNECTIONS 1000`,
    `GRANT ALL ON *.* TO ${platformAccount} WITH GRANT OPTION`,
    `CREATE DATABASE ${identifier(platform)} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
    `CREATE TABLE ${platform}.heartbeat (id TINYINT PRIMARY KEY, at TIMESTAMP(6) NOT NULL)`,
    `INSERT INTO ${platform}.heartbeat VALUES (1, UTC_TIMESTAMP(6))`,
    `CREATE TABLE ${platform}.instance (id TINYINT PRIMARY KEY, users_created BOOLEAN NOT NULL)`,
    `INSERT INTO ${platform}.instance VALUES (1, FALSE)`,
    `CREATE TABLE ${platform}.marks (name VARCHAR(64) PRIMARY KEY, owner VARCHAR(64) NOT NULL, mark VARCHAR(255) NOT NULL)`,
    "DROP USER 'root'@'localhost'",
    ...componentsSql,
  ]
    .map((statement) => `${statement};\n`)
    .join("");
}
