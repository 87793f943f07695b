import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { ParameterType } from "@holdfast/common/engine-catalog/parameter.ts";
import { effectiveParameters } from "../effective-parameters.ts";
import type { Instance } from "../engine-driver.ts";
import { roleOf } from "../members.ts";
import { isSessionSql } from "./end-sessions.ts";
import { reservedSessions } from "./front.ts";
import { isPlatformNameSql } from "./platform-accounts.ts";
import { sessionsParameter } from "./render.ts";
import type { Session } from "./session.ts";

/** Parameter that is off on a replica: a user's value applies on the primary only. */
const eventsParameter = "event_scheduler";

/** Parameters that the engine is to run with. */
export function desiredParameters(instance: Instance): Map<string, string> {
  const values = effectiveParameters(instance);
  return roleOf(instance.spec) === "primary" ? values : values.set(eventsParameter, "OFF");
}

/** Values of the catalog's parameters that the engine runs with, as users set them. */
export async function userParameters(instance: Instance, session: Session): Promise<Map<string, string>> {
  const running = await runningParameters(instance, session);
  const desired = effectiveParameters(instance).get(eventsParameter);
  return roleOf(instance.spec) === "primary" || desired === undefined ? running : running.set(eventsParameter, desired);
}

/** Values of the catalog's parameters that the engine runs with. */
export async function runningParameters(instance: Instance, session: Session): Promise<Map<string, string>> {
  const names = [...effectiveParameters(instance).keys()];
  const rows = await session.rows<{ name: string; value: string }>(
    `SELECT VARIABLE_NAME AS name, VARIABLE_VALUE AS value FROM performance_schema.global_variables
     WHERE VARIABLE_NAME IN (?)`,
    [names],
  );
  const catalog = parametersOf(instance.spec.engine, instance.spec.version);
  return new Map(rows.map(({ name, value }) => [name, asCatalog(name, value, catalog.get(name)?.type)]));
}

/** The engine prints fractions with six digits, and counts the platform's sessions. */
function asCatalog(name: string, value: string, type: ParameterType | undefined): string {
  if (name === sessionsParameter) return String(Number(value) - reservedSessions);
  return type === "real" ? String(Number(value)) : value;
}

/** Counters of the engine by name. */
export async function readCounters(session: Session, names: readonly string[]): Promise<Map<string, number>> {
  const rows = await session.rows<{ name: string; value: string }>(
    "SELECT VARIABLE_NAME AS name, VARIABLE_VALUE AS value FROM performance_schema.global_status WHERE VARIABLE_NAME IN (?)",
    [names],
  );
  return new Map(rows.map(({ name, value }) => [name, Number(value)]));
}

/** Users' sessions. */
export async function countSessions(session: Session): Promise<number> {
  const [row] = await session.rows<{ count: number }>(
    `SELECT COUNT(*) AS count FROM performance_schema.threads t
     WHERE ${isSessionSql("t")} AND NOT ${isPlatformNameSql("t.processlist_user")}`,
  );
  return Number(row?.count ?? 0);
}
