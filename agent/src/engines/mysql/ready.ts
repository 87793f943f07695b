import { setTimeout as sleep } from "node:timers/promises";
import { endForbiddenSessions } from "../front/front-commands.ts";
import type { Instance } from "../engine-driver.ts";
import { createDatabase } from "./databases.ts";
import { frontOf } from "./front.ts";
import { platform } from "./layout.ts";
import { probeSql } from "./probe.ts";
import { codeOf, numberOf, type Session, withSession } from "./session.ts";
import { setUser } from "./users.ts";

/**
 * Resolves when the engine accepts a write, its front listens, and the users and databases of the first settings exist.
 * Those are created only once, so that later changes by SQL survive restarts.
 */
export async function ready(instance: Instance, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await endForbiddenSessions(frontOf(instance), signal);
      await withSession(instance, signal, (session) => initialize(instance, session), { withinMs: 60_000 });
      return;
    } catch (error) {
      if (!isStarting(error)) throw error;
      await sleep(5, undefined, { signal });
    }
  }
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
  // An interrupted first start may have left a part of them.
  for (const user of spec.users) await setUser(session, user, undefined);
  await session.rows(`UPDATE ${platform}.instance SET users_created = TRUE`);
}

/** True if a socket does not exist or does not listen yet, or for ER_SERVER_SHUTDOWN of the server before. */
function isStarting(error: unknown): boolean {
  return (
    ["ENOENT", "ECONNREFUSED", "ECONNRESET", "PROTOCOL_CONNECTION_LOST"].includes(codeOf(error)) ||
    numberOf(error) === 1053
  );
}
