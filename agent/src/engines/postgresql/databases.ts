import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { EngineDatabaseSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DatabasesFacet } from "../contents-facets.ts";
import { EngineRefused } from "../engine-errors.ts";
import { type DatabaseState, databaseStateSql } from "./database-list.ts";
import { hasReservedPrefix, isReserved, isReservedDatabase } from "./layout.ts";
import { codeOf, identifier, type Session, withAdvisoryLock, withSession } from "./session.ts";

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
        .filter(({ name }) => !isReservedDatabase(name))
        .map(({ size, ...row }) => create(EngineDatabaseSchema, { ...row, sizeBytes: BigInt(size) }));
    }),

  create: (instance, { name, owner, mark }, signal, options) =>
    withAdvisoryLock(instance, `database ${name}`, signal, options, async (session) => {
      if (hasReservedPrefix(name) || name.startsWith("template"))
        throw new EngineRefused(`The name ${name} is reserved for the platform.`);
      if (isReserved(owner)) throw new EngineRefused(`The user ${owner} does not exist.`);
      const oid = mark === "" ? undefined : oidOfMark(mark);
      const marked = oid === undefined ? "" : ` OID ${oid}`;
      try {
        await session.rows(`CREATE DATABASE ${identifier(name)} OWNER ${identifier(owner)}${marked}`);
        return { created: true };
      } catch (error) {
        // undefined_object: the owner.
        if (codeOf(error) === "42704") throw new EngineRefused(`The user ${owner} does not exist.`, { cause: error });
        if (codeOf(error) !== "42P04") throw error;
        return { created: oid !== undefined && (await oidOfDatabase(session, name)) === oid };
      }
    }),

  /**
   * Ends the sessions in the database and drops it. The default database cannot be dropped: the service's connection
   * URI names it.
   */
  drop: (instance, name, signal, options) =>
    withAdvisoryLock(instance, `database ${name}`, signal, options, async (session) => {
      if (name === defaultDatabase) throw new EngineRefused(`The database ${defaultDatabase} cannot be dropped.`);
      if (isReservedDatabase(name)) return { existed: false };
      try {
        await session.rows(`DROP DATABASE ${identifier(name)} WITH (FORCE)`);
        return { existed: true };
      } catch (error) {
        if (codeOf(error) === "3D000") return { existed: false };
        throw error;
      }
    }),

  settled: (instance, name, mark, signal, options) =>
    withAdvisoryLock(instance, `database ${name}`, signal, options, async (session) => {
      const oid = isReservedDatabase(name) ? undefined : await oidOfDatabase(session, name);
      return { exists: oid !== undefined, marked: mark !== "" && oid === oidOfMark(mark) };
    }),
};

/** OID of a database; undefined if there is none of this name. */
async function oidOfDatabase(session: Session, name: string): Promise<number | undefined> {
  const rows = await session.rows<{ oid: string }>("SELECT oid::bigint FROM pg_database WHERE datname = $1", [name]);
  return rows[0] && Number(rows[0].oid);
}

/**
 * OID that encodes the mark. CREATE DATABASE is not transactional, so nothing can be stored with it except through its
 * own OID clause. The engine's own counter reaches the upper half of the OIDs last.
 */
function oidOfMark(mark: string): number {
  return 2 ** 31 + (createHash("sha256").update(mark).digest().readUInt32BE(0) >>> 1);
}
