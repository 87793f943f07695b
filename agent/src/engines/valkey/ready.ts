import { existsSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { type DirectoryWatch, watchDirectory } from "../../os/directory-watch.ts";
import { createEngineFile, setEngineFileMode } from "../../os/engine-file.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineBusy } from "../engine-errors.ts";
import { roleOf } from "../members.ts";
import { endCommands } from "./end-commands.ts";
import { secretFile, usersCreatedFile } from "./layout.ts";
import { endForbiddenSessions } from "../front/front-commands.ts";
import { frontOf } from "./front.ts";
import { becomePrimary } from "./replication/replication.ts";
import { dataRole } from "./replication/follower-files.ts";
import { type Session, withSession } from "./session.ts";
import { putUser } from "./users.ts";

/**
 * Resolves when the engine accepts a write (a replica: responds), its front listens, and the users of the first
 * settings exist. These users are created only once, so that a restart does not create a dropped user again.
 */
export async function ready(instance: Instance, signal: AbortSignal): Promise<void> {
  // Both programs create their sockets when they start; no file appears when the data are loaded.
  const sockets = watchDirectory(instance.paths.run);
  try {
    await untilInitialized(instance, sockets, signal);
  } finally {
    sockets.close();
  }
}

/** Delay between two attempts. A socket exists before its program listens on it. */
const retryMs = 20;

async function untilInitialized(instance: Instance, sockets: DirectoryWatch, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await endForbiddenSessions(frontOf(instance), signal);
      await withSession(instance, signal, (session) => initialize(instance, session));
      return;
    } catch (error) {
      // On a follower only readers run scripts, which lose nothing: kill them so that the promotion does not wait.
      if (
        error instanceof EngineBusy &&
        roleOf(instance.spec) === "primary" &&
        (await dataRole(instance)) === "follower"
      )
        await endCommands(instance, signal);
      else if (!isStarting(error)) throw error;
      await sockets.changed(retryMs, signal);
    }
  }
}

async function initialize(instance: Instance, session: Session): Promise<void> {
  if (roleOf(instance.spec) === "primary") {
    await becomePrimary(instance, session);
    // A full engine still serves reads and deletions.
    await probe(session).catch((error: unknown) => {
      if (!isOutOfMemory(error)) throw error;
    });
  } else {
    await session.call("PING");
  }
  // After a restore the file is the engine's own; the group needs to read it.
  await setEngineFileMode(secretFile(instance), 0o640).catch(() => undefined);
  if (existsSync(usersCreatedFile(instance))) return;
  for (const user of instance.spec.users) await putUser(session, user);
  await session.call("ACL", "SAVE");
  await createEngineFile(usersCreatedFile(instance));
}

/** True if the socket does not exist yet, does not listen yet, or the data are being loaded. */
function isStarting(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error ? error.code : undefined;
  return code === "ENOENT" || code === "ECONNREFUSED" || error.message.startsWith("LOADING");
}

/** True if writes are refused by a setting (`min-replicas-to-write`) although the engine could take them. */
function isBlocked(reason: unknown): boolean {
  return reason instanceof Error && /NOREPLICAS/.test(reason.message);
}

/** True if the engine refuses writes that need memory: the memory is full, or writes are blocked. */
export function isOutOfMemory(reason: unknown): boolean {
  return reason instanceof Error && /^OOM|EXECABORT.*OOM|previous errors.*OOM/.test(reason.message);
}

/** A durable write that no user can see: the key is created and deleted in one transaction. */
export async function probe(session: Session): Promise<void> {
  const key = `holdfast:probe:${randomUUID()}`;
  const replies = [
    session.call("MULTI"),
    session.call("SET", key, "1"),
    session.call("DEL", key),
    session.call("EXEC"),
  ];
  // The refused command has the reason; EXEC's error only reports that a command was refused.
  const refused = (await Promise.allSettled(replies)).find(({ status }) => status === "rejected");
  if (refused?.status === "rejected" && !isBlocked(refused.reason)) throw refused.reason;
}
