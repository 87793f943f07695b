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
    for (const parameter of await differing(instance, session)) await setGlobal(session, parameter);
    for (const parameter of await differing(instance, session)) await setGlobal(session, parameter);
    const refused = await differing(instance, session);
    // MySQL rounds sizes, so a different size is not a rejected one.
    const values = refused.filter(({ type }) => type !== "bytes").map(({ name, value }) => `${name} = ${value}`);
    if (values.length > 0) throw new EngineRefused(`MySQL rejects ${values.join(", ")}.`);
  });
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
