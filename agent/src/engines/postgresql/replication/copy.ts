import { existsSync } from "node:fs";
import { join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import type { EngineDeps } from "../../engine-deps.ts";
import type { Instance } from "../../engine-driver.ts";
import { ownMember } from "../../members.ts";
import { dataDirectory, program } from "../layout.ts";
import { keyFiles, takeKey } from "../own-key.ts";
import { memberName, primaryConninfo } from "./members.ts";

export const standbySignal = "standby.signal";

/** Data that follow a primary say so themselves: PostgreSQL takes no write with them, whoever starts it. */
export async function dataOf(instance: Instance): Promise<"follower" | "primary" | "absent"> {
  const directory = dataDirectory(instance);
  if (!existsSync(join(directory, "PG_VERSION"))) return "absent";
  return existsSync(join(directory, standbySignal)) ? "follower" : "primary";
}

/** The old data go first: the disk need not hold both. The copy appears whole or not at all. */
export async function copy(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const { runAsEngine: run } = deps;
  const conninfo = primaryConninfo(instance);
  const own = ownMember(instance);
  if (conninfo === undefined || own === undefined) throw new Error("a primary copies nobody's data");
  const directory = dataDirectory(instance);
  const partial = `${directory}.partial`;
  await takeKey(deps, keyFiles(instance), signal);
  await run(["rm", "-rf", directory, partial], { signal });
  const options = [
    `--pgdata=${partial}`,
    // What a copy has received is no reason to acknowledge a commit: nobody could be promoted with it.
    `--dbname=${conninfo.replace(memberName(own.number), `${memberName(own.number)}_copy`)}`,
    "--wal-method=stream",
    `--slot=${memberName(own.number)}`,
    "--checkpoint=fast",
    "--no-password",
    // The primary would write it to a temporary file, of which users set a limit.
    "--no-manifest",
  ];
  await run([program(instance, "pg_basebackup"), ...options], { env: { LC_ALL: "C", TZ: "UTC" }, signal });
  await run(["touch", join(partial, standbySignal)], { signal });
  await run(["mv", partial, directory], { signal });
  await syncPath(directory);
  await syncPath(instance.paths.data);
}
