import { create } from "@bufbuild/protobuf";
import { defaultDatabase, defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { EngineDatabaseSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { isSystemDatabase, schemaPrefix } from "@holdfast/tds/bind/databases.ts";
import {
  createDatabaseSql,
  dependentQuery,
  dropDatabaseSql,
  schemasQuery,
} from "@holdfast/tds/catalog/database-sql.ts";
import type { DatabasesFacet } from "../contents-facets.ts";
import { EngineRefused } from "../engine-errors.ts";
import type { Instance } from "../engine-driver.ts";
import { groups } from "../postgresql/layout.ts";
import { codeOf, inTransaction, type Session, withAdvisoryLock, withSession } from "../postgresql/session.ts";
import { layoutOf } from "./layout.ts";

const listQuery = `
SELECT d.folded AS name,
       (SELECT coalesce(sum(pg_relation_size(c.oid)), 0) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
         WHERE starts_with(n.nspname::text, d.prefix) AND substr(n.nspname::text, length(d.prefix) + 1) ~ '^[^_]') AS size
  FROM holdfast_tsql.databases d ORDER BY d.folded`;

/** The databases of T-SQL clients in the layout multi-db: each is a set of schemas of the default database. */
export const databases: DatabasesFacet = {
  async list(instance, signal) {
    requireSeveral(instance);
    const work = async (session: Session) => {
      const rows = await session.rows<{ name: string; size: string }>(listQuery);
      return rows.map(({ name, size }) =>
        create(EngineDatabaseSchema, { name, owner: defaultUser, sizeBytes: BigInt(size), state: "ready" }),
      );
    };
    return withSession(instance, signal, work, { database: defaultDatabase });
  },

  async create(instance, { name, mark }, signal, options) {
    requireSeveral(instance);
    if (isSystemDatabase(name)) throw new EngineRefused(`The name ${name} is that of a database of the system.`);
    const work = async (session: Session) => {
      try {
        await inTransaction(session, async () => {
          for (const statement of createDatabaseSql(name, groups.admin, mark)) await session.rows(statement);
        });
        return { created: true };
      } catch (error) {
        // A client may create it at the same time.
        if (!["42P06", "23505"].includes(codeOf(error))) throw error;
        return { created: await isMarked(session, name, mark) };
      }
    };
    return withAdvisoryLock(instance, `database ${name}`, signal, options, work, defaultDatabase);
  },

  /** Sessions in the database remain: its objects no longer exist for them. */
  async drop(instance, name, signal, options) {
    requireSeveral(instance);
    if (name === defaultDatabase || isSystemDatabase(name))
      throw new EngineRefused(`The database ${name} cannot be dropped.`);
    const work = async (session: Session) => {
      if (!(await exists(session, name))) return { existed: false };
      const schemas = await session.rows<{ oid: string; nspname: string }>(schemasQuery, [schemaPrefix(name)]);
      const oids = `{${schemas.map(({ oid }) => oid).join(",")}}`;
      const [dependent] = await session.rows<{ name: string }>(dependentQuery, [oids]);
      if (dependent !== undefined)
        throw new EngineRefused(`The database ${name} is used by ${dependent.name} of another database.`);
      await session.rows(dropDatabaseSql(schemas.map(({ nspname }) => nspname)));
      return { existed: true };
    };
    return withAdvisoryLock(instance, `database ${name}`, signal, options, work, defaultDatabase);
  },

  async settled(instance, name, mark, signal, options) {
    const work = async (session: Session) => ({
      exists: await exists(session, name),
      marked: await isMarked(session, name, mark),
    });
    return withAdvisoryLock(instance, `database ${name}`, signal, options, work, defaultDatabase);
  },
};

function requireSeveral({ spec }: Instance): void {
  if (layoutOf(spec) === "single-db") throw new EngineRefused("A service of the layout single-db has one database.");
}

async function exists(session: Session, name: string): Promise<boolean> {
  const schema = `${schemaPrefix(name)}dbo`;
  return (await session.rows("SELECT FROM pg_namespace WHERE nspname = $1", [schema])).length > 0;
}

/** True if the database was created with this mark. */
async function isMarked(session: Session, name: string, mark: string): Promise<boolean> {
  if (mark === "") return false;
  const sql = "SELECT obj_description(oid, 'pg_namespace') AS comment FROM pg_namespace WHERE nspname = $1";
  const [row] = await session.rows<{ comment: string | null }>(sql, [`${schemaPrefix(name)}dbo`]);
  return row?.comment?.includes(JSON.stringify(mark)) === true;
}
