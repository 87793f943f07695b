import { inTransaction, type Session } from "../session.ts";
import { mapRefusals, QueueRefused } from "./queue-refused.ts";
import { roles } from "./schema/grants.ts";
import { agentRole, queueGroup, schema } from "./schema/names.ts";
import { versions } from "./schema/versions.ts";

export interface Migration {
  /** Schema version before the migration, 0 for none, and after it. */
  readonly from: number;
  readonly to: number;
  /**
   * True if the data came from another service, by a fork or a restore. Its tasks were deleted and its queues have new
   * ids.
   */
  readonly copied: boolean;
}

const lockTimeoutMs = 2000;

/**
 * Creates the schema of queues or migrates it to the current version, in one transaction of a superuser's session that
 * waits up to 2 s for each lock. Does nothing if the schema is current. Throws QueueRefused with `schema_not_owned` if
 * objects of users have its names, and EngineBusy after a lock timeout.
 */
export function migrate(session: Session, { serviceId }: { readonly serviceId: string }): Promise<Migration> {
  return mapRefusals(() =>
    inTransaction(session, async () => {
      await session.rows(`SET LOCAL lock_timeout = ${lockTimeoutMs}`);
      await session.rows("SELECT pg_advisory_xact_lock(hashtextextended('holdfast queues', 0))");
      await refuseForeign(session);
      const from = await schemaVersionOf(session);
      if (from < versions.length) {
        await putRoles(session);
        for (const statement of roles) await session.rows(statement);
        if (!(await exists(session, `SELECT FROM pg_namespace WHERE nspname = '${schema}'`)))
          await session.rows(`CREATE SCHEMA ${schema}`);
        for (const statement of versions.slice(from).flat()) await session.rows(statement);
        await session.rows(
          `INSERT INTO ${schema}.meta AS m (version, service_id) VALUES ($1, $2) ON CONFLICT (one) DO UPDATE SET version = $1`,
          [versions.length, serviceId],
        );
      }
      const copied = await exists(session, `SELECT FROM ${schema}.meta WHERE service_id <> $1`, [serviceId]);
      if (copied) {
        await session.rows(`DELETE FROM ${schema}.tasks`);
        await session.rows(`UPDATE ${schema}.queues SET id = gen_random_uuid()::text`);
        await session.rows(`UPDATE ${schema}.meta SET service_id = $1`, [serviceId]);
      }
      return { from, to: Math.max(from, versions.length), copied };
    }),
  );
}

/** Version of the schema in this database, which the platform must own; 0 if there is none. */
export async function schemaVersionOf(session: Session): Promise<number> {
  const hasTable = await exists(
    session,
    `SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     JOIN pg_roles r ON r.oid = c.relowner AND r.oid = n.nspowner AND r.rolname = session_user
     WHERE n.nspname = '${schema}' AND c.relname = 'meta' AND c.relkind = 'r'`,
  );
  if (!hasTable) return 0;
  const [row] = await session.rows<{ version: number }>(`SELECT version FROM ${schema}.meta`);
  return row?.version ?? 0;
}

async function exists(session: Session, query: string, values: readonly unknown[] = []): Promise<boolean> {
  const [row] = await session.rows<{ is: boolean }>(`SELECT EXISTS (${query}) AS is`, values);
  return row?.is === true;
}

/** Objects in the schema, or attached to its tables, that the platform does not own. */
const foreignObjects = `
  WITH platform_owner AS (SELECT oid AS role FROM pg_roles WHERE rolname = session_user),
    ns AS (SELECT oid AS id, nspowner FROM pg_namespace WHERE nspname = '${schema}'),
    tables AS (SELECT c.oid AS id, c.relname FROM pg_class c JOIN ns ON c.relnamespace = ns.id)
  SELECT kind || ' ' || name AS what FROM (
    SELECT 'schema' AS kind, '${schema}' AS name, nspowner AS owner FROM ns
    UNION ALL SELECT 'relation', relname, relowner FROM pg_class JOIN ns ON relnamespace = ns.id
    UNION ALL SELECT 'function', proname, proowner FROM pg_proc JOIN ns ON pronamespace = ns.id
    UNION ALL SELECT 'type', typname, typowner FROM pg_type JOIN ns ON typnamespace = ns.id
    UNION ALL SELECT 'operator', oprname, oprowner FROM pg_operator JOIN ns ON oprnamespace = ns.id
    UNION ALL SELECT 'operator class', opcname, opcowner FROM pg_opclass JOIN ns ON opcnamespace = ns.id
    UNION ALL SELECT 'operator family', opfname, opfowner FROM pg_opfamily JOIN ns ON opfnamespace = ns.id
    UNION ALL SELECT 'conversion', conname, conowner FROM pg_conversion JOIN ns ON connamespace = ns.id
    UNION ALL SELECT 'collation', collname, collowner FROM pg_collation JOIN ns ON collnamespace = ns.id
    UNION ALL SELECT 'statistics', stxname, stxowner FROM pg_statistic_ext JOIN ns ON stxnamespace = ns.id
    UNION ALL SELECT 'dictionary', dictname, dictowner FROM pg_ts_dict JOIN ns ON dictnamespace = ns.id
    UNION ALL SELECT 'text search', cfgname, cfgowner FROM pg_ts_config JOIN ns ON cfgnamespace = ns.id
    UNION ALL SELECT 'trigger', tgname, proowner FROM pg_trigger t JOIN tables ON t.tgrelid = tables.id
      JOIN pg_proc p ON p.oid = t.tgfoid
    UNION ALL SELECT 'rule', rulename, NULL FROM pg_rewrite r JOIN tables ON r.ev_class = tables.id
    UNION ALL SELECT 'policy', polname, NULL FROM pg_policy p JOIN tables ON p.polrelid = tables.id
    UNION ALL SELECT 'child table', inhrelid::regclass::text, NULL FROM pg_inherits i JOIN tables ON i.inhparent = tables.id
  ) AS found, platform_owner WHERE owner IS DISTINCT FROM platform_owner.role LIMIT 1`;

/**
 * Throws QueueRefused if the schema contains objects of others. The check reads their owners in catalogs and calls no
 * code.
 */
async function refuseForeign(session: Session): Promise<void> {
  const [found] = await session.rows<{ what: string }>(foreignObjects);
  if (found !== undefined)
    throw new QueueRefused(
      "schema_not_owned",
      `The ${found.what} in schema ${schema} is not the platform's; drop or rename it.`,
    );
}

const findRole = `SELECT rolcanlogin OR rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS may,
    EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid) AS has_members
  FROM pg_roles r WHERE rolname = $1`;

/**
 * Creates both roles if they are missing. Throws QueueRefused if a user created one with more than a group's
 * privileges.
 */
export async function putRoles(session: Session): Promise<void> {
  for (const role of [queueGroup, agentRole]) {
    const [found] = await session.rows<{ may: boolean; has_members: boolean }>(findRole, [role]);
    if (found === undefined) await session.rows(`CREATE ROLE ${role} NOLOGIN`);
    else if (found.may || (role === agentRole && found.has_members))
      throw new QueueRefused("schema_not_owned", `The role ${role} is not the platform's; drop or rename it.`);
  }
}
