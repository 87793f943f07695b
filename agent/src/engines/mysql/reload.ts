import { parametersOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineRefused } from "../engine-errors.ts";
import { applyAllowLists } from "../front/front-commands.ts";
import { roleOf } from "../members.ts";
import { frontOf } from "./front.ts";
import { reloadPooler } from "./pooler.ts";
import { literal, messageOf, numberOf, type Session, withSession } from "./session.ts";
import { endUserSessions } from "./user-sessions.ts";
import { desiredParameters, runningParameters } from "./variables.ts";

/**
 * Parameters whose values limit each other at a start. The running engine accepts values with which it does not start,
 * and warns.
 */
const redoLogParameters: ReadonlySet<string> = new Set(["innodb_thread_concurrency", "innodb_redo_log_capacity"]);

/**
 * Applies changed settings to the running engine, the fronts first, so that forbidden sessions end without delay.
 * Throws EngineRefused for a parameter that the engine rejects.
 */
export async function reload(instance: Instance, signal: AbortSignal): Promise<void> {
  await applyAllowLists(frontOf(instance), signal);
  await reloadPooler(instance, signal);
  await withSession(instance, signal, async (session) => {
    await session.rows("ALTER INSTANCE RELOAD TLS");
    await limitWrites(instance, session);
    // Limits of one parameter by another, such as innodb_io_capacity by its maximum, depend on the order.
    const changed = await differing(instance, session);
    for (const parameter of changed) await setGlobal(session, parameter);
    for (const parameter of await differing(instance, session)) await setGlobal(session, parameter);
    const refused = await differing(instance, session);
    // MySQL rounds sizes, so a different size is not a rejected one.
    const values = refused.filter(({ type }) => type !== "bytes").map(({ name, value }) => `${name} = ${value}`);
    if (values.length > 0) throw new EngineRefused(`MySQL rejects ${values.join(", ")}.`);
    if (changed.some(({ name }) => redoLogParameters.has(name))) await requireSafeRedoLog(session);
  });
}

/** Throws EngineRefused if the engine would not start with the size of its redo log and its number of threads. */
async function requireSafeRedoLog(session: Session): Promise<void> {
  // The warning is of the statement, and the first of two changes is compared with a value that is about to change.
  await session.rows("SET GLOBAL innodb_thread_concurrency = @@GLOBAL.innodb_thread_concurrency");
  const warnings = await session.rows<{ Message: string }>("SHOW WARNINGS");
  const unsafe = warnings.find(({ Message: message }) => message.includes("for safety of redo log files"));
  if (unsafe !== undefined) throw new EngineRefused(unsafe.Message);
}

type Setting = Pick<Parameter, "name" | "type"> & { readonly value: string };

/** Desired values of live parameters for which the engine has another value. */
async function differing(instance: Instance, session: Session): Promise<Setting[]> {
  const now = await runningParameters(instance, session);
  const catalog = parametersOf(instance.spec.engine, instance.spec.version);
  return [...desiredParameters(instance)].flatMap(([name, value]) => {
    const parameter = catalog.get(name);
    if (parameter === undefined || parameter.needsRestart || now.get(name) === value) return [];
    return [{ name, type: parameter.type, value }];
  });
}

/** Sets `read_only`. Ends the users' sessions first: open transactions would delay the change and could not commit. */
async function limitWrites({ spec, writesBlocked }: Instance, session: Session): Promise<void> {
  if (roleOf(spec) !== "primary") return;
  const [row] = await session.rows<{ blocked: number }>("SELECT @@GLOBAL.read_only AS blocked");
  if ((Number(row?.blocked) === 1) === (writesBlocked === true)) return;
  if (writesBlocked === true) await endUserSessions(session);
  await session.rows(`SET GLOBAL read_only = ${writesBlocked === true ? "ON" : "OFF"}`);
  // Ends sessions that began between the two statements.
  if (writesBlocked === true) await endUserSessions(session);
}

async function setGlobal(session: Session, { name, type, value }: Setting): Promise<void> {
  const isNumber = ["integer", "real", "bytes", "duration"].includes(type);
  try {
    await session.rows(`SET GLOBAL ${name} = ${isNumber ? Number(value) : literal(value)}`);
  } catch (error) {
    if (numberOf(error) === 0) throw error;
    throw new EngineRefused(messageOf(error), { cause: error });
  }
}
