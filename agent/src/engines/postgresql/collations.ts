import type { Instance } from "../engine-driver.ts";
import type { CollationsFacet, CollationUse } from "../contents-facets.ts";
import { inEachDatabase, isReadySql, listDatabases } from "./database-list.ts";
import { type Session, withSession } from "./session.ts";

const statementMs = 3_000;

/** Query of the databases' default collations. Collations of the builtin provider depend on no library. */
const defaultsOfDatabases = `
  SELECT datname AS database, datcollate AS collation, datlocprovider AS provider,
    datcollversion AS recorded, pg_database_collation_actual_version(oid) AS actual
  FROM pg_database
  WHERE ${isReadySql} AND datlocprovider IN ('c', 'i') AND datcollversion IS NOT NULL`;

/** Collations that columns of users' tables and indexes name, within a database. */
const namedInDatabase = `
  SELECT DISTINCT current_database() AS database, c.collname AS collation, c.collprovider AS provider,
    c.collversion AS recorded, pg_collation_actual_version(c.oid) AS actual
  FROM pg_attribute a
    JOIN pg_class r ON r.oid = a.attrelid AND r.relkind IN ('r', 'p', 'm', 'i', 'I')
    JOIN pg_collation c ON c.oid = a.attcollation AND c.collprovider IN ('c', 'i')
  WHERE r.oid >= 16384 AND c.collversion IS NOT NULL`;

interface Row {
  readonly database: string;
  readonly collation: string;
  readonly provider: "c" | "i";
  readonly recorded: string;
  readonly actual: string | null;
}

/** Collations that data depend on, with the library version at their creation and the one of this image. */
export const collations: CollationsFacet = {
  async uses(instance, signal) {
    const read = <T>(work: (session: Session) => Promise<T>) => withSession(instance, signal, work, { statementMs });
    const defaults = await read((session) => session.rows<Row>(defaultsOfDatabases));
    const named = await inEachDatabase(
      () => read(listDatabases),
      (database) => namedIn(instance, database, signal),
    );
    return [...defaults, ...named.flat()].map(useOf);
  },
};

function namedIn(instance: Instance, database: string, signal: AbortSignal): Promise<Row[]> {
  return withSession(instance, signal, (session) => session.rows<Row>(namedInDatabase), { database, statementMs });
}

function useOf({ database, collation, provider, recorded, actual }: Row): CollationUse {
  return { database, collation, library: provider === "i" ? "ICU" : "libc", recorded, actual: actual ?? "" };
}
