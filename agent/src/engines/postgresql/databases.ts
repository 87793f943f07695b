import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { EngineDatabaseSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DatabasesFacet } from "../contents-facets.ts";
import { EngineRefused } from "../engine-errors.ts";
import { type DatabaseState, databaseStateSql } from "./database-list.ts";
import { isReserved } from "./layout.ts";
import { withTurn } from "./change.ts";
import { codeOf, identifier, type Session, withSession } from "./session.ts";

export const databases: DatabasesFacet = {
  list: (instance, signal) =>
    withSession(instance, signal, async (session) => {
      const rows = await session.rows<{ name: string; owner: string; size: string; state: DatabaseState }>(
        // The size of a database without files is null.
        `SELECT datname AS name, pg_get_userbyid(datdba) AS owner, coalesce(pg_database_size(oid), 0) AS size,
           ${databaseStateSql} AS state
         FROM pg_database WHERE NOT datistemplate ORDER BY datname`,
      );
      return rows
        .filter(({ name }) => !isReserved(name))
        .map(({ size, ...row }) => create(EngineDatabaseSchema, { ...row, sizeBytes: BigInt(size) }));
    }),

  create: (instance, { name, owner, mark }, signal, options) =>
    withTurn(instance, `database ${name}`, signal, options, async (session) => {
      if (isReserved(name) || name.startsWith("template"))
        throw new EngineRefused(`the name ${name} is the platform's`);
      if (isReserved(owner)) throw new EngineRefused(`there is no user ${owner}`);
      const oid = mark === "" ? undefined : oidOf(mark);
      const marked = oid === undefined ? "" : ` OID ${oid}`;
      try {
        await session.rows(`CREATE DATABASE ${identifier(name)} OWNER ${identifier(owner)}${marked}`);
        return { created: true };
      } catch (error) {
        if (codeOf(error) !== "42P04") throw error;
        return { created: oid !== undefined && (await numberOf(session, name)) === oid };
      }
    }),

  /** Ends the sessions in it. The default database stays: the service's connection names it. */
  drop: (instance, name, signal, options) =>
    withTurn(instance, `database ${name}`, signal, options, async (session) => {
      if (name === defaultDatabase) throw new EngineRefused(`${defaultDatabase} cannot be dropped`);
      if (isReserved(name) || name.startsWith("template")) return { existed: false };
      try {
        await session.rows(`DROP DATABASE ${identifier(name)} WITH (FORCE)`);
        return { existed: true };
      } catch (error) {
        if (codeOf(error) === "3D000") return { existed: false };
        throw error;
      }
    }),

  settled: (instance, name, mark, signal, options) =>
    withTurn(instance, `database ${name}`, signal, options, async (session) => {
      const oid = isReserved(name) ? undefined : await numberOf(session, name);
      return { exists: oid !== undefined, marked: mark !== "" && oid === oidOf(mark) };
    }),
};

/** The number of a database; undefined when there is none of the name. */
async function numberOf(session: Session, name: string): Promise<number | undefined> {
  const rows = await session.rows<{ oid: string }>("SELECT oid::bigint FROM pg_database WHERE datname = $1", [name]);
  return rows[0] && Number(rows[0].oid);
}

/**
 * Where a mark is kept: a database is not made in a transaction, so nothing can be written beside it but what is in its own
 * statement. The upper half of the numbers is one that the engine's own counter reaches last.
 */
function oidOf(mark: string): number {
  return 2 ** 31 + (createHash("sha256").update(mark).digest().readUInt32BE(0) >>> 1);
}
