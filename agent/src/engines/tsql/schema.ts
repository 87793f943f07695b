import { createHash } from "node:crypto";
import { defaultDatabase } from "@holdfast/common/engine-catalog/default-names.ts";
import { installation } from "@holdfast/tds/catalog/install.ts";
import type { EngineCheck, Instance } from "../engine-driver.ts";
import { roleOf } from "../members.ts";
import { isDatabaseUnavailable } from "../postgresql/database-list.ts";
import { groups } from "../postgresql/layout.ts";
import { collationOf, layoutOf } from "./layout.ts";
import { literal, messageOf, type Session, withSession } from "../postgresql/session.ts";

const ownSchemas = ["holdfast_tsql", "holdfast_tsql_earlier", "sys", "tsql_information_schema"];

/**
 * Statements of one transaction. The triggers that grant privileges on new objects are off: they would let users write
 * to views of the catalog, whose owner is the superuser.
 */
const statementsOf = (spec: Instance["spec"]) => `SET LOCAL event_triggers = off;
${installation({
  layoutMode: layoutOf(spec),
  collation: collationOf(spec),
  defaultDatabase,
  administrators: groups.admin,
})}`;

const record = "SELECT obj_description(oid, 'pg_namespace') AS installed FROM pg_namespace WHERE nspname = $1";
const foreignOwners = `SELECT nspname AS name FROM pg_namespace
  WHERE nspname = ANY ($1::text[]) AND nspowner <> (SELECT oid FROM pg_roles WHERE rolname = current_user)`;

/** The schemas that the T-SQL front end uses in the default database: its types, functions and views. */
export interface FrontEndSchema {
  /** Installs them on a primary, once in each version of the agent. Throws if users have a schema of the same name. */
  ensure(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Health check; undefined while the schemas are installed. */
  check(instance: Instance, signal: AbortSignal): Promise<EngineCheck | undefined>;
}

export function createFrontEndSchema(): FrontEndSchema {
  const installed = new Set<string>();

  async function ensure(instance: Instance, signal: AbortSignal): Promise<void> {
    const { nodeId } = instance.spec;
    // A replica gets the schemas from its primary.
    if (installed.has(nodeId) || roleOf(instance.spec) !== "primary") return;
    const statements = statementsOf(instance.spec);
    const work = (session: Session) => install(session, statements);
    await withSession(instance, signal, work, { database: defaultDatabase, statementMs: 60_000, isLocal: true });
    installed.add(nodeId);
  }

  return {
    ensure,
    async check(instance, signal) {
      try {
        await ensure(instance, signal);
        return undefined;
      } catch (error) {
        signal.throwIfAborted();
        const reason = isDatabaseUnavailable(error)
          ? `T-SQL clients cannot sign in: there is no database ${defaultDatabase}.`
          : `The schemas of the T-SQL front end are not installed: ${messageOf(error)}`;
        return { name: "tds_schema", status: "unhealthy", reason };
      }
    },
  };
}

async function install(session: Session, statements: string): Promise<void> {
  const digest = createHash("sha256").update(statements).digest("hex").slice(0, 32);
  const [found] = await session.rows<{ installed: string | null }>(record, [ownSchemas[0]]);
  if (found?.installed === digest) return;
  const foreign = await session.rows<{ name: string }>(foreignOwners, [ownSchemas]);
  if (foreign.length > 0)
    throw new Error(`rename the schema ${foreign.map(({ name }) => name).join(", ")} in ${defaultDatabase}`);
  await session.rows(`BEGIN; ${statements} COMMENT ON SCHEMA holdfast_tsql IS ${literal(digest)}; COMMIT`);
}
