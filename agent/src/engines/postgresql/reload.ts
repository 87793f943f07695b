import { setTimeout as sleep } from "node:timers/promises";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "./allow-list.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { EngineRefused } from "../engine-errors.ts";
import { roleOf } from "../members.ts";
import { keyFiles, takeKey } from "./own-key.ts";
import { platformRoles } from "./layout.ts";
import type { Pooler } from "./pooler/pooler.ts";
import { preparePooler } from "./pooler/role.ts";
import { type Session, withSession } from "./session.ts";

/** Ends the sessions of users that are older than the settings; those that are signing in are judged by the new ones. */
async function endWriters(session: Session, since: string | undefined): Promise<void> {
  await session.rows(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'
       AND usesysid NOT IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($1::text[])) AND backend_start < $2::timestamptz`,
    [platformRoles, since],
  );
}

/** Of parameters that users set; those that wait for a start are not refused. */
const refusedSql = `SELECT DISTINCT f.name, f.setting FROM pg_file_settings f LEFT JOIN pg_settings s USING (name)
  WHERE f.error IS NOT NULL AND f.name = ANY ($1::text[]) AND s.context IS DISTINCT FROM 'postmaster' ORDER BY 1`;

/** The engine goes on with the value of before where it refuses one, and says so in its log alone. */
async function refuseUntaken(session: Session, names: readonly string[]): Promise<void> {
  const refused = await session.rows<{ name: string; setting: string }>(refusedSql, [names]);
  if (refused.length === 0) return;
  const values = refused.map(({ name, setting }) => `${name} = ${setting}`).join(", ");
  throw new EngineRefused(`PostgreSQL does not take ${values}`);
}

/**
 * Throws EngineRefused for values that the engine does not take. Resolves when new connections are judged by the new files and the sessions that these forbid are over. A connection that
 * was signing in all the while can outlive it by the authentication time-out; `observe` ends it.
 */
export async function reload(
  deps: EngineDeps & { readonly pooler: Pick<Pooler, "reload"> },
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  await takeKey(deps, keyFiles(instance), signal);
  const [asked] = await withSession(instance, signal, (session) =>
    session.rows<{ at: string; asked: boolean }>("SELECT clock_timestamp()::text AS at, pg_reload_conf() AS asked"),
  );
  for (;;) {
    // A new session has the time of the postmaster's last reload; older sessions keep their own.
    const loaded = await withSession(instance, signal, async (session) => {
      const [row] = await session.rows<{ loaded: boolean }>("SELECT pg_conf_load_time() >= $1::timestamptz AS loaded", [
        asked?.at,
      ]);
      if (row?.loaded === true) await endForbiddenSessions(session, instance.spec);
      // A transaction that began before may go on writing; the next session finds that it cannot.
      if (row?.loaded === true && instance.writesBlocked === true) await endWriters(session, asked?.at);
      return row?.loaded === true;
    });
    if (loaded) {
      const names = [...effectiveParameters(instance).keys()];
      await withSession(instance, signal, (session) => refuseUntaken(session, names));
      break;
    }
    await sleep(5, undefined, { signal });
  }
  if (instance.spec.pooler === undefined) return;
  // Of a service that has one from now on; replicas have it from their primary.
  if (roleOf(instance.spec) === "primary") await withSession(instance, signal, preparePooler, { isLocal: true });
  await deps.pooler.reload(instance, signal);
}
