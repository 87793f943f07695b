import { create } from "@bufbuild/protobuf";
import { defaultDatabase, defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { EngineDatabaseSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { ChangeOptions, DatabasesFacet } from "../contents-facets.ts";
import type { Instance } from "../engine-driver.ts";
import { EngineRefused } from "../engine-errors.ts";
import { documentRoles, hasReservedPrefix, platform } from "../postgresql/layout.ts";
import {
  codeOf,
  inTransaction,
  messageOf,
  type Session,
  withAdvisoryLock,
  withSession,
} from "../postgresql/session.ts";
import { asPostgresql } from "./as-postgresql.ts";

/** Databases of MongoDB's own servers, which clients and drivers treat as special. */
const reserved = ["admin", "config", "local"];
/** Collection by which an empty database exists. */
const firstCollection = "default";

const collections = "documentdb_api_catalog.collections";
/** Marks of the databases that the platform created, in the database of PostgreSQL that has the documents. */
const marks = `${platform}.document_databases`;

/** Statement that creates the table of marks. */
export const createMarksSql = `CREATE SCHEMA IF NOT EXISTS ${platform};
  CREATE TABLE IF NOT EXISTS ${marks} (name text PRIMARY KEY, mark text NOT NULL)`;
/** Expression that is true if the table of marks exists. */
export const hasMarksSql = `to_regclass('${marks}') IS NOT NULL`;

/**
 * Databases of documents: a database exists while DocumentDB has a collection in it. A client may also create and drop
 * databases; the mark is of those that the platform created, and changes with the collection in one transaction.
 */
export const databases: DatabasesFacet = {
  list: (instance, signal) =>
    withSession(
      asPostgresql(instance),
      signal,
      async (session) => {
        const rows = await session.rows<{ name: string; size: string }>(
          `SELECT database_name AS name,
             coalesce(sum(pg_total_relation_size(to_regclass(format('documentdb_data.documents_%s', collection_id)))), 0)
               AS size
           FROM ${collections} GROUP BY database_name ORDER BY database_name`,
        );
        return rows.map(({ name, size }) =>
          create(EngineDatabaseSchema, { name, owner: defaultUser, sizeBytes: BigInt(size), state: "ready" }),
        );
      },
      { database: defaultDatabase },
    ),

  create: (instance, { name, mark }, signal, options) =>
    inDocuments(instance, name, signal, options, async (session) => {
      if (reserved.includes(name) || hasReservedPrefix(name))
        throw new EngineRefused(`The name ${name} is reserved for the platform.`);
      if (await isThere(session, name)) return { created: await isMarked(session, name, mark) };
      await session.rows(
        `INSERT INTO ${marks} (name, mark) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET mark = excluded.mark`,
        [name, mark],
      );
      await createFirstCollection(session, name);
      return { created: true };
    }),

  /** The default database cannot be dropped: the service's connection URI names it. */
  drop: (instance, name, signal, options) =>
    inDocuments(instance, name, signal, options, async (session) => {
      if (name === defaultDatabase) throw new EngineRefused(`The database ${defaultDatabase} cannot be dropped.`);
      await session.rows(`DELETE FROM ${marks} WHERE name = $1`, [name]);
      if (!(await isThere(session, name))) return { existed: false };
      await asWriter(session);
      await session.rows("SELECT documentdb_api.drop_database($1)", [name]);
      return { existed: true };
    }),

  settled: (instance, name, mark, signal, options) =>
    inDocuments(instance, name, signal, options, async (session) => {
      const exists = await isThere(session, name);
      return { exists, marked: exists && (await isMarked(session, name, mark)) };
    }),
};

/** Creates databases that were never created; one that a client dropped since remains dropped. */
export async function createOnce(session: Session, names: readonly string[]): Promise<void> {
  const known = await session.rows<{ name: string }>(`SELECT name FROM ${marks} WHERE name = ANY ($1::text[])`, [
    names,
  ]);
  const created = new Set(known.map(({ name }) => name));
  for (const name of names.filter((each) => !created.has(each)))
    await inTransaction(session, async () => {
      await session.rows(`INSERT INTO ${marks} (name, mark) VALUES ($1, '')`, [name]);
      if (!(await isThere(session, name))) await createFirstCollection(session, name);
    });
}

/**
 * Runs a change of the named database in one transaction, one change at a time. Throws EngineRefused or EngineBusy if
 * the engine refuses.
 */
function inDocuments<T>(
  instance: Instance,
  name: string,
  signal: AbortSignal,
  options: ChangeOptions | undefined,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  const change = async (session: Session) => {
    try {
      return await inTransaction(session, () => work(session));
    } catch (error) {
      // Errors of DocumentDB, such as for a name that differs from an existing one in its letter case only.
      if (codeOf(error).startsWith("M")) throw new EngineRefused(messageOf(error), { cause: error });
      throw error;
    }
  };
  return withAdvisoryLock(asPostgresql(instance), `database ${name}`, signal, options, change, defaultDatabase);
}

async function createFirstCollection(session: Session, name: string): Promise<void> {
  await asWriter(session);
  await session.rows("SELECT documentdb_api.create_collection($1, $2)", [name, firstCollection]);
}

/** The rest of the transaction has the role and the search path of FerretDB's sessions. */
async function asWriter(session: Session): Promise<void> {
  await session.rows(`SET LOCAL ROLE ${documentRoles.writers}`);
  await session.rows(`SET LOCAL search_path TO "$user", public`);
}

async function isThere(session: Session, name: string): Promise<boolean> {
  return (await session.rows(`SELECT 1 FROM ${collections} WHERE database_name = $1 LIMIT 1`, [name])).length > 0;
}

async function isMarked(session: Session, name: string, mark: string): Promise<boolean> {
  if (mark === "") return false;
  return (await session.rows(`SELECT 1 FROM ${marks} WHERE name = $1 AND mark = $2`, [name, mark])).length > 0;
}
