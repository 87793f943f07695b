import { create } from "@bufbuild/protobuf";
import { defaultDatabase, defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { EngineDatabaseSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DatabasesFacet } from "../contents-facets.ts";
import { EngineRefused } from "../engine-errors.ts";
import { killAll } from "./end-sessions.ts";
import { hasReservedPrefix, isReservedDatabase, isReservedUser, platform } from "./layout.ts";
import { identifier, numberOf, type Session, withNamedLock, withSession } from "./session.ts";

/** ER_DB_CREATE_EXISTS and ER_DB_DROP_EXISTS. */
const exists = 1007;
const missing = 1008;

export const databases: DatabasesFacet = {
  list: (instance, signal) =>
    withSession(instance, signal, async (session) => {
      const names = await session.rows<{ name: string; owner: string | null }>(
        `SELECT s.schema_name AS name, m.owner AS owner FROM information_schema.schemata s
         LEFT JOIN ${platform}.marks m ON m.name = s.schema_name ORDER BY s.schema_name`,
      );
      const sizes = await sizesByDatabase(session);
      return names
        .filter(({ name }) => !isReservedDatabase(name))
        .map(({ name, owner }) =>
          create(EngineDatabaseSchema, {
            name,
            owner: owner ?? defaultUser,
            sizeBytes: BigInt(sizes.get(name) ?? 0),
            state: "ready",
          }),
        );
    }),

  create: (instance, { name, owner, mark }, signal, options) =>
    withNamedLock(instance, `database ${name}`, signal, options, async (session) => {
      if (isReservedDatabase(name) || hasReservedPrefix(name))
        throw new EngineRefused(`The name ${name} is reserved for the platform.`);
      if (isReservedUser(owner)) throw new EngineRefused(`The user ${owner} does not exist.`);
      if (await isThere(session, name)) return { created: await isMarked(session, name, mark) };
      // The mark comes first: a crash after CREATE DATABASE must not leave a database that nobody requested.
      await session.rows(`REPLACE INTO ${platform}.marks (name, owner, mark) VALUES (?, ?, ?)`, [name, owner, mark]);
      try {
        await createDatabase(session, name);
        return { created: true };
      } catch (error) {
        await session.rows(`DELETE FROM ${platform}.marks WHERE name = ?`, [name]);
        if (numberOf(error) === exists) return { created: false };
        throw error;
      }
    }),

  /** Ends the sessions in the database and drops it. The service's connection URI names the default one. */
  drop: (instance, name, signal, options) =>
    withNamedLock(instance, `database ${name}`, signal, options, async (session) => {
      if (name === defaultDatabase) throw new EngineRefused(`The database ${defaultDatabase} cannot be dropped.`);
      if (isReservedDatabase(name)) return { existed: false };
      await killAll(session, "db = ?", name);
      try {
        await session.rows(`DROP DATABASE ${identifier(name)}`);
      } catch (error) {
        if (numberOf(error) === missing) return { existed: false };
        throw error;
      }
      await session.rows(`DELETE FROM ${platform}.marks WHERE name = ?`, [name]);
      return { existed: true };
    }),

  settled: (instance, name, mark, signal, options) =>
    withNamedLock(instance, `database ${name}`, signal, options, async (session) => {
      const found = !isReservedDatabase(name) && (await isThere(session, name));
      return { exists: found, marked: found && (await isMarked(session, name, mark)) };
    }),
};

export function createDatabase(session: Session, name: string): Promise<unknown> {
  return session.rows(`CREATE DATABASE ${identifier(name)}`);
}

async function isThere(session: Session, name: string): Promise<boolean> {
  const rows = await session.rows("SELECT 1 FROM information_schema.schemata WHERE BINARY schema_name = ?", [name]);
  return rows.length > 0;
}

async function isMarked(session: Session, name: string, mark: string): Promise<boolean> {
  if (mark === "") return false;
  const rows = await session.rows(`SELECT 1 FROM ${platform}.marks WHERE name = ? AND mark = ?`, [name, mark]);
  return rows.length > 0;
}

/** Bytes of each database's files, as the engine last recorded them. */
async function sizesByDatabase(session: Session): Promise<Map<string, number>> {
  const rows = await session.rows<{ name: string; size: string }>(
    `SELECT SUBSTRING_INDEX(name, '/', 1) AS name, SUM(file_size) AS size
     FROM information_schema.innodb_tablespaces WHERE space_type = 'Single' GROUP BY 1`,
  );
  return new Map(rows.map(({ name, size }) => [decoded(name), Number(size)]));
}

/** Bytes of all users' databases. */
export async function dataBytes(session: Session): Promise<number> {
  const sizes = [...(await sizesByDatabase(session))].filter(([name]) => !isReservedDatabase(name));
  return sizes.reduce((sum, [, size]) => sum + size, 0);
}

/** File names have each special character of a database's name as `@` and its code, such as `@002d` for a hyphen. */
function decoded(fileName: string): string {
  return fileName.replaceAll(/@([0-9a-f]{4})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
