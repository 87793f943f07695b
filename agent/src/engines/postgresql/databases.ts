import { create } from "@bufbuild/protobuf";
import { EngineDatabaseSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type DatabasesFacet, EngineRefused } from "../engine-driver.ts";
import { defaultDatabase, isReserved } from "./layout.ts";
import { refusalOf } from "./refusal.ts";
import { codeOf, identifier, withSession } from "./session.ts";

export const databases: DatabasesFacet = {
  list: (instance, signal) =>
    withSession(instance, signal, async (session) => {
      const rows = await session.rows<{ name: string; owner: string; size: string }>(
        `SELECT datname AS name, pg_get_userbyid(datdba) AS owner, pg_database_size(oid) AS size
         FROM pg_database WHERE NOT datistemplate ORDER BY datname`,
      );
      return rows
        .filter(({ name }) => !isReserved(name))
        .map(({ name, owner, size }) => create(EngineDatabaseSchema, { name, owner, sizeBytes: BigInt(size) }));
    }),

  create: (instance, name, owner, signal) =>
    withSession(instance, signal, async (session) => {
      if (isReserved(name) || name.startsWith("template"))
        throw new EngineRefused(`the name ${name} is the platform's`);
      if (isReserved(owner)) throw new EngineRefused(`there is no user ${owner}`);
      try {
        await session.rows(`CREATE DATABASE ${identifier(name)} OWNER ${identifier(owner)}`);
        return { created: true };
      } catch (error) {
        if (codeOf(error) === "42P04") return { created: false };
        throw refusalOf(error);
      }
    }),

  /** Ends the sessions in it. The default database stays: the service's connection names it. */
  drop: (instance, name, signal) =>
    withSession(instance, signal, async (session) => {
      if (name === defaultDatabase) throw new EngineRefused(`${defaultDatabase} cannot be dropped`);
      if (isReserved(name) || name.startsWith("template")) return { existed: false };
      try {
        await session.rows(`DROP DATABASE ${identifier(name)} WITH (FORCE)`);
        return { existed: true };
      } catch (error) {
        if (codeOf(error) === "3D000") return { existed: false };
        throw refusalOf(error);
      }
    }),
};
