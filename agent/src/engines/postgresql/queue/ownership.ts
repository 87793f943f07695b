import type { Session } from "../session.ts";
import { QueueRefused } from "./queue-refused.ts";
import { agentRole, queueGroup, schema } from "./schema/names.ts";

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
export async function refuseForeign(session: Session): Promise<void> {
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
