import { setTimeout as sleep } from "node:timers/promises";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "./allow-list.ts";
import type { EngineDeps } from "../engine-deps.ts";
import { EngineRefused } from "../engine-errors.ts";
import { roleOf } from "../members.ts";
import { keyFiles, updateKeyCopy } from "./key-copy.ts";
import { platformRoles } from "./layout.ts";
import type { Pooler } from "./pooler/pooler.ts";
import { preparePooler } from "./pooler/role.ts";
import { type Session, withSession } from "./session.ts";

/** Ends users' sessions that began before the settings changed; sessions that are authenticating get the new ones. */
async function endWriters(session: Session, since: string | undefined): Promise<void> {
  await session.rows(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'
       AND usesysid NOT IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($1::text[])) AND backend_start < $2::timestamptz`,
    [platformRoles, since],
  );
}

/** Query of the parameters that the engine refuses, among those that users set and that need no restart. */
const refusedSql = `SELECT DISTINCT f.name, f.setting FROM pg_file_settings f LEFT JOIN pg_settings s USING (name)
  WHERE f.error IS NOT NULL AND f.name = ANY ($1::text[]) AND s.context IS DISTINCT FROM 'postmaster' ORDER BY 1`;

/** Throws EngineRefused for refused values: the engine retains the previous value and reports it only in its log. */
async function throwIfRefused(session: Session, names: readonly string[]): Promise<void> {
  const refused = await session.rows<{ name: string; setting: string }>(refusedSql, [names]);
  if (refused.length === 0) return;
  const values = refused.map(({ name, setting }) => `${name} = ${setting}`).join(", ");
  throw new EngineRefused(`PostgreSQL rejects ${values}.`);
}

/**
 * Throws EngineRefused for values that the engine rejects. Resolves when new connections use the new files and the
 * sessions that they forbid have ended. A connection that was authenticating all the time may outlive this by
 * `authentication_timeout`; `observe` ends it.
 */
export async function reload(
  deps: EngineDeps & { readonly pooler: Pick<Pooler, "reload"> },
  instance: Instance,
  signal: AbortSignal,
): Promise<void> {
  await updateKeyCopy(deps, keyFiles(instance), signal);
  const [requested] = await withSession(instance, signal, (session) =>
    session.rows<{ at: string; sent: boolean }>("SELECT clock_timestamp()::text AS at, pg_reload_conf() AS sent"),
  );
  for (;;) {
    // A new session reports the time of the postmaster's last reload; older sessions report their own.
    const loaded = await withSession(instance, signal, async (session) => {
      const [row] = await session.rows<{ loaded: boolean }>("SELECT pg_conf_load_time() >= $1::timestamptz AS loaded", [
        requested?.at,
      ]);
      if (row?.loaded === true) await endForbiddenSessions(session, instance.spec);
      // An open transaction could still write; the next session is read-only.
      if (row?.loaded === true && instance.writesBlocked === true) await endWriters(session, requested?.at);
      return row?.loaded === true;
    });
    if (loaded) {
      const names = [...effectiveParameters(instance).keys()];
      await withSession(instance, signal, (session) => throwIfRefused(session, names));
      break;
    }
    await sleep(5, undefined, { signal });
  }
  if (instance.spec.pooler === undefined) return;
  // For a service that gets a pooler now. Replicas get the role and function from their primary.
  if (roleOf(instance.spec) === "primary") await withSession(instance, signal, preparePooler, { isLocal: true });
  await deps.pooler.reload(instance, signal);
}
