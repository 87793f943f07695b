import { watchDirectory } from "../../os/directory-watch.ts";
import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "../front/front-commands.ts";
import { roleOf } from "../members.ts";
import { createDatabase } from "./databases.ts";
import { frontOf } from "./front.ts";
import { platform } from "./layout.ts";
import { probeSql } from "./probe.ts";
import { waitsForReplica } from "./replication/peer-port.ts";
import { becomePrimary } from "./replication/replication.ts";
import { codeOf, numberOf, type Session, withSession } from "./session.ts";
import { setUser } from "./users.ts";

/** Delay between two attempts. A socket exists before its program listens on it. */
const retryMs = 100;

/**
 * Resolves when the engine accepts a write (a replica: responds), its front listens, and the users and databases of the
 * first settings exist. These are created only once, so that later changes by SQL survive restarts. Both programs
 * create their sockets when they start, so the sockets' directory is watched.
 */
export function createReady(deps: EngineDeps) {
  return async (instance: Instance, signal: AbortSignal): Promise<void> => {
    const sockets = watchDirectory(instance.paths.run);
    try {
      for (;;) {
        try {
          await endForbiddenSessions(frontOf(instance), signal);
          await becomeReady(deps, instance, signal);
          return;
        } catch (error) {
          if (!isStarting(error)) throw error;
          await sockets.changed(retryMs, signal);
        }
      }
    } finally {
      sockets.close();
    }
  };
}

async function becomeReady(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  const isPrimary = roleOf(instance.spec) === "primary";
  if (isPrimary) await becomePrimary(deps, instance, signal);
  const work = async (session: Session) => {
    if (isPrimary) await initialize(instance, session);
  };
  await withSession(instance, signal, work, { withinMs: 60_000, isLocal: waitsForReplica(instance) });
}

async function initialize({ spec }: Instance, session: Session): Promise<void> {
  await session.rows(probeSql);
  const [row] = await session.rows<{ created: number }>(`SELECT users_created AS created FROM ${platform}.instance`);
  if (row?.created === 1) return;
  for (const name of spec.databases) {
    try {
      await createDatabase(session, name);
    } catch (error) {
      // ER_DB_CREATE_EXISTS: an interrupted first start created it.
      if (numberOf(error) !== 1007) throw error;
    }
  }
  // An interrupted first start may have created some of the users.
  for (const user of spec.users) await setUser(session, user, undefined);
  await session.rows(`UPDATE ${platform}.instance SET users_created = TRUE`);
}

/** True if a socket does not exist or does not listen yet, or for ER_SERVER_SHUTDOWN of the previous server. */
function isStarting(error: unknown): boolean {
  return (
    ["ENOENT", "ECONNREFUSED", "ECONNRESET", "PROTOCOL_CONNECTION_LOST"].includes(codeOf(error)) ||
    numberOf(error) === 1053
  );
}
