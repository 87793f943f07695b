import { setTimeout as sleep } from "node:timers/promises";
import type { Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "./allow-list.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { takeKey } from "./own-key.ts";
import { withSession } from "./session.ts";

/**
 * Resolves when new connections are judged by the new files and the sessions that these forbid are over. A connection that
 * was signing in all the while can outlive it by the authentication time-out; `observe` ends it.
 */
export async function reload(deps: EngineDeps, instance: Instance, signal: AbortSignal): Promise<void> {
  await takeKey(deps, instance, signal);
  const [asked] = await withSession(instance, signal, (session) =>
    session.rows<{ at: string; asked: boolean }>("SELECT clock_timestamp()::text AS at, pg_reload_conf() AS asked"),
  );
  for (;;) {
    // A new session has the time of the postmaster's last reload; older sessions keep their own.
    const loaded = await withSession(instance, signal, async (session) => {
      const [row] = await session.rows<{ loaded: boolean }>("SELECT pg_conf_load_time() >= $1::timestamptz AS loaded", [
        asked?.at,
      ]);
      if (row?.loaded === true) await endForbiddenSessions(session, instance.spec.allowedCidrs);
      return row?.loaded === true;
    });
    if (loaded) return;
    await sleep(5, undefined, { signal });
  }
}
