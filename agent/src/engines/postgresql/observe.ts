import type { EngineCheck, EngineObservation, Instance } from "../engine-driver.ts";
import { endForbiddenSessions } from "./allow-list.ts";
import { platform } from "./layout.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import { codeOf, isPinned, messageOf, type Session, withSession } from "./session.ts";

const probeMs = 2_000;

/**
 * Fresh from the engine, through a new session each time: one that is open already would not see that nobody gets in. A
 * probe that fails is an answer. "Too many clients", "disk full" and "recovering" never mean dead.
 */
export async function observe(instance: Instance, signal: AbortSignal): Promise<EngineObservation> {
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(probeMs + 1_000)]);
  try {
    return await withSession(instance, bounded, (session) => look(instance, session), { statementMs: probeMs });
  } catch (error) {
    signal.throwIfAborted();
    const check = bounded.aborted ? unhealthy(`no answer in ${probeMs} ms`) : verdict(error);
    return { version: "", checks: [check], pendingRestart: [], effectiveParameters: {}, dataBytes: 0 };
  }
}

async function look(instance: Instance, session: Session): Promise<EngineObservation> {
  await session.rows(`UPDATE ${platform}.heartbeat SET at = clock_timestamp()`);
  await endForbiddenSessions(session, instance.spec.allowedCidrs);
  const [row] = await session.rows<{ version: string; pending: string[]; settings: [string, string][]; size: string }>(
    `SELECT current_setting('server_version') AS version,
       ARRAY (SELECT name FROM pg_settings WHERE pending_restart ORDER BY name) AS pending,
       ARRAY (SELECT ARRAY[name, current_setting(name)] FROM pg_settings WHERE name = ANY ($1::text[])) AS settings,
       (SELECT sum(pg_database_size(oid)) FROM pg_database) AS size`,
    [[...effectiveParameters(instance).keys()]],
  );
  if (row === undefined) throw new Error("a SELECT without FROM gave no row");
  return {
    version: row.version.split(" ")[0] ?? "",
    checks: [{ name: "liveness", status: "healthy", reason: "" }],
    pendingRestart: row.pending,
    effectiveParameters: Object.fromEntries([...row.settings, ...pinnedHere(instance)]),
    dataBytes: Number(row.size),
  };
}

/** What this session cannot see of the engine, as it was rendered. */
function pinnedHere(instance: Instance): [string, string][] {
  return [...effectiveParameters(instance)].filter(([name]) => isPinned(name));
}

/** Pure: what a failed probe says of the engine. */
function verdict(error: unknown): EngineCheck {
  const code = codeOf(error);
  const message = messageOf(error);
  if (code === "53300") return { name: "liveness", status: "degraded", reason: "too many clients" };
  if (code === "53100" || /No space left on device/.test(message)) return unhealthy("disk full");
  if (code === "57P03") return { name: "liveness", status: "degraded", reason: "recovering" };
  if (code === "25006") return { name: "liveness", status: "degraded", reason: "read only" };
  if (code === "57P01" || code === "57P02") return unhealthy("shutting down");
  if (code === "ENOENT" || code === "ECONNREFUSED") return unhealthy("nobody listens");
  return unhealthy(message);
}

function unhealthy(reason: string): EngineCheck {
  return { name: "liveness", status: "unhealthy", reason };
}
