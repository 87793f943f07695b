import type { IdentityFacet } from "../../identity-facet.ts";
import type { Instance } from "../../instance.ts";
import { EngineRefused } from "../../engine-errors.ts";
import { codeOf, type Session, withSession } from "../session.ts";
import { refusalOf } from "../refusal.ts";
import { addUser } from "./add-user.ts";
import { eraseAgain, eraseUser } from "./erase-user.ts";
import { prepareSchema } from "./prepare-schema.ts";
import { readRows } from "./read-rows.ts";
import { revokeSessions } from "./revoke-session.ts";

/** End users of apps, in the schema `_mdb_auth` of a database of their owner. */
export const identity: IdentityFacet = {
  prepare: (instance, wanted, signal) =>
    inDatabase(instance, wanted.database, signal, (session) => prepareSchema(session, wanted)),
  revoke: (instance, database, sessionId, signal) =>
    inDatabase(instance, database, signal, async (session) => (await revokeSessions(session, [sessionId])) > 0),
  erase: (instance, database, user, signal) =>
    inDatabase(instance, database, signal, (session) => eraseUser(session, user)),
  replay: (instance, database, { userIds, sessionIds }, signal) =>
    inDatabase(instance, database, signal, async (session) => ({
      erased: userIds.length === 0 ? 0 : await eraseAgain(session, userIds),
      revoked: sessionIds.length === 0 ? 0 : await revokeSessions(session, sessionIds),
    })),
  add: (instance, database, user, signal) =>
    inDatabase(instance, database, signal, (session) => addUser(session, user)),
  read: (instance, database, asked, signal) =>
    inDatabase(instance, database, signal, (session) => readRows(session, asked)),
};

const noSuchDatabase = "3D000";
const noSuchThing = ["3F000", "42P01"];

async function inDatabase<T>(
  instance: Instance,
  database: string,
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  try {
    return await withSession(instance, signal, work, { database, statementMs: 10_000, lockMs: 3_000 });
  } catch (error) {
    const code = codeOf(error);
    if (code === noSuchDatabase) throw new EngineRefused(`The database ${database} does not exist.`);
    if (noSuchThing.includes(code)) throw new EngineRefused(`The database ${database} has no users of an app.`);
    throw refusalOf(error);
  }
}
