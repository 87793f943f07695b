import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { makeEngineFile, setEngineFileMode } from "../../os/engine-file.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import { roleOf } from "../members.ts";
import { endCommands } from "./end-commands.ts";
import { secretFile, usersMadeFile } from "./layout.ts";
import { endForbiddenSessions } from "./listener.ts";
import { isOutOfMemory, probe } from "./probe.ts";
import { becomePrimary } from "./replication/become-primary.ts";
import { dataOf } from "./replication/follower-files.ts";
import { type Session, withSession } from "./session.ts";
import { putUser } from "./users.ts";

/**
 * Resolves when the engine takes a write, or as a replica answers, its listener listens, and the users that it was asked to be made with are there.
 * They are made once: what is dropped later stays so over restarts.
 */
export async function ready(instance: Instance, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await endForbiddenSessions(instance, signal);
      await withSession(instance, signal, (session) => settle(instance, session));
      return;
    } catch (error) {
      // A follower has scripts of readers alone, which are nobody's loss: a promotion does not wait for them.
      if (error instanceof EngineBusy && roleOf(instance.spec) === "primary" && (await dataOf(instance)) === "follower")
        await endCommands(instance, signal);
      else if (!isStarting(error)) throw error;
      await sleep(5, undefined, { signal });
    }
  }
}

async function settle(instance: Instance, session: Session): Promise<void> {
  if (roleOf(instance.spec) === "primary") {
    await becomePrimary(instance, session);
    // One that is full takes reads and deletions.
    await probe(session).catch((error: unknown) => {
      if (!isOutOfMemory(error)) throw error;
    });
  } else {
    await session.call("PING");
  }
  // Data directories of before kept it to the agent; in one that was restored it is the engine's own.
  await setEngineFileMode(secretFile(instance), 0o640).catch(() => undefined);
  if (existsSync(usersMadeFile(instance))) return;
  for (const user of instance.spec.users) await putUser(session, user);
  await session.call("ACL", "SAVE");
  await makeEngineFile(usersMadeFile(instance));
}

/** No socket yet, nobody listens on it yet, or the data is being read. */
function isStarting(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? error.code : undefined;
  return code === "ENOENT" || code === "ECONNREFUSED" || error.message.startsWith("LOADING");
}
