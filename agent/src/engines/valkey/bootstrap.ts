import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { Instance } from "../engine-driver.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { aclFile, dataDirectory, platform, secretFile } from "./layout.ts";

/** Makes the data directory with the platform's user inside and nobody else. It appears whole or not at all. */
export async function bootstrap({ randomBytes }: EngineDeps, instance: Instance): Promise<void> {
  const directory = dataDirectory(instance);
  if (existsSync(directory)) return;
  const made = { paths: { data: `${instance.paths.data}/valkey.partial` } };
  await rm(made.paths.data, { recursive: true, force: true });
  await mkdir(dataDirectory(made), { recursive: true });
  // The agent makes it and the engine, of the same group, works in it.
  await chmod(dataDirectory(made), 0o770);
  const secret = randomBytes(32).toString("hex");
  const hash = createHash("sha256").update(secret).digest("hex");
  // Nobody can be a user that is off. Its rights are those by which Valkey replays transactions from its file at a start:
  // without them whatever MULTI and EXEC wrote would be lost.
  const rules = `user default off resetpass ~* &* +@all\nuser ${platform} on #${hash} ~* &* +@all\n`;
  await writeFile(aclFile(made), rules, { mode: 0o640, flush: true });
  // Of the engine's group: the component that takes snapshots signs in with it as well.
  await writeFile(secretFile(made), secret, { mode: 0o640, flush: true });
  await rename(dataDirectory(made), directory);
  await rm(made.paths.data, { recursive: true, force: true });
  await syncPath(instance.paths.data);
}
