import { existsSync } from "node:fs";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import {
  type DataPath,
  dataDirectory,
  engineDirectory,
  secretFile,
  serverProgram,
  temporaryDirectory,
} from "./layout.ts";
import { platformSql } from "./platform-sql.ts";

/**
 * Creates the data directory, with an identity of its own, the platform's account as the only one and the platform's
 * database. The directory appears complete or not at all; an interrupted one is created again.
 */
export async function bootstrap(
  { runAsEngine: run, randomBytes }: EngineDeps,
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  const directory = engineDirectory(instance);
  if (existsSync(directory)) return;
  const base = `${instance.paths.data}/mysql.partial`;
  const draft = { paths: { data: base } };
  const statements = `${base}/platform.sql`;
  await run(["rm", "-rf", base], { signal });
  await run(["mkdir", "-p", "-m", "0750", base, engineDirectory(draft), temporaryDirectory(draft)], { signal });
  const secret = randomBytes(32).toString("hex");
  const write = async (path: string, input: string, mode: string) => {
    await run(["tee", path], { input, signal });
    await run(["chmod", mode, path], { signal });
  };
  // Readable by the engine's group, of which the agent is a member.
  await write(secretFile(draft), secret, "0640");
  await write(statements, platformSql(secret), "0600");
  await run([serverProgram(instance.paths.software), ...initializeOptions(instance, draft, statements)], {
    signal,
  });
  await run(["rm", statements], { signal });
  await run(["sync", "--file-system", base], { signal });
  await run(["mv", engineDirectory(draft), directory], { signal });
  await run(["rm", "-rf", base], { signal });
  await syncPath(instance.paths.data);
}

function initializeOptions({ paths }: Instance, draft: DataPath, statements: string): string[] {
  return [
    "--no-defaults",
    "--initialize-insecure",
    `--basedir=${paths.software}`,
    `--datadir=${dataDirectory(draft)}`,
    // Otherwise it writes into the directory that TMPDIR of its environment names.
    `--tmpdir=${temporaryDirectory(draft)}`,
    `--init-file=${statements}`,
    "--auto-generate-certs=OFF",
    "--caching-sha2-password-auto-generate-rsa-keys=OFF",
    "--skip-log-bin",
    "--innodb-buffer-pool-size=32M",
  ];
}
