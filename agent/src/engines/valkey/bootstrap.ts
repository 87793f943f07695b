import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { Instance } from "../engine-driver.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { aclFile, dataDirectory, platform, secretFile } from "./layout.ts";

/**
 * Creates the data directory with the platform's user as the only one. The directory appears complete or not at all.
 */
export async function bootstrap({ randomBytes }: EngineDeps, instance: Instance): Promise<void> {
  const directory = dataDirectory(instance);
  if (existsSync(directory)) return;
  const draft = { paths: { data: `${instance.paths.data}/valkey.partial` } };
  await rm(draft.paths.data, { recursive: true, force: true });
  await mkdir(dataDirectory(draft), { recursive: true });
  // The agent owns the directory; the engine, of the same group, works in it.
  await chmod(dataDirectory(draft), 0o770);
  const secret = randomBytes(32).toString("hex");
  const hash = createHash("sha256").update(secret).digest("hex");
  // The default user is off, so no client can sign in as it. Valkey replays MULTI and EXEC of its append-only file with
  // its permissions: without them such writes would be lost at a restart.
  const rules = `user default off resetpass ~* &* +@all\nuser ${platform} on #${hash} ~* &* +@all\n`;
  await writeFile(aclFile(draft), rules, { mode: 0o640, flush: true });
  // Readable by the engine's group: the backup component signs in with it too.
  await writeFile(secretFile(draft), secret, { mode: 0o640, flush: true });
  await rename(dataDirectory(draft), directory);
  await rm(draft.paths.data, { recursive: true, force: true });
  await syncPath(instance.paths.data);
}
