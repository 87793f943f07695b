import type { Session } from "../session.ts";
import { QueueRefused } from "./queue-refused.ts";
import { agentRole, queueGroup, schema } from "./schema/names.ts";

/** What is in the schema, or hangs on its tables, and is not the platform's. */
const foreignObjects = `
  WITH ours AS (SELECT oid AS role FROM pg_roles WHERE rolname = session_user),
    place AS (SELECT oid AS id, nspowner FROM pg_namespace WHERE nspname = '${schema}'),
    tables AS (SELECT c.oid AS id, c.relname FROM pg_class c JOIN place ON c.relnamespace = place.id)
  SELECT kind || ' ' || name AS what FROM (
    SELECT 'schema' AS kind, '${schema}' AS name, nspowner AS owner FROM place
    UNION ALL SELECT 'relation', relname, relowner FROM pg_class JOIN place ON relnamespace = place.id
    UNION ALL SELECT 'function', proname, proowner FROM pg_proc JOIN place ON pronamespace = place.id
    UNION ALL SELECT 'type', typname, typowner FROM pg_type JOIN place ON typnamespace = place.id
    UNION ALL SELECT 'operator', oprname, oprowner FROM pg_operator JOIN place ON oprnamespace = place.id
    UNION ALL SELECT 'operator class', opcname, opcowner FROM pg_opclass JOIN place ON opcnamespace = place.id
    UNION ALL SELECT 'operator family', opfname, opfowner FROM pg_opfamily JOIN place ON opfnamespace = place.id
    UNION ALL SELECT 'conversion', conname, conowner FROM pg_conversion JOIN place ON connamespace = place.id
    UNION ALL SELECT 'collation', collname, collowner FROM pg_collation JOIN place ON collnamespace = place.id
    UNION ALL SELECT 'statistics', stxname, stxowner FROM pg_statistic_ext JOIN place ON stxnamespace = place.id
    UNION ALL SELECT 'dictionary', dictname, dictowner FROM pg_ts_dict JOIN place ON dictnamespace = place.id
    UNION ALL SELECT 'text search', cfgname, cfgowner FROM pg_ts_config JOIN place ON cfgnamespace = place.id
    UNION ALL SELECT 'trigger', tgname, proowner FROM pg_trigger t JOIN tables ON t.tgrelid = tables.id
      JOIN pg_proc p ON p.oid = t.tgfoid
    UNION ALL SELECT 'rule', rulename, NULL FROM pg_rewrite r JOIN tables ON r.ev_class = tables.id
    UNION ALL SELECT 'policy', polname, NULL FROM pg_policy p JOIN tables ON p.polrelid = tables.id
    UNION ALL SELECT 'child table', inhrelid::regclass::text, NULL FROM pg_inherits i JOIN tables ON i.inhparent = tables.id
  ) AS found, ours WHERE owner IS DISTINCT FROM ours.role LIMIT 1`;

/**
 * Throws QueueRefused when something at the schema's place is not the platform's. Nothing of it is called to find out:
 * the catalog says who owns it.
 */
export async function refuseForeign(session: Session): Promise<void> {
  const [found] = await session.rows<{ what: string }>(foreignObjects);
  if (found !== undefined)
    throw new QueueRefused(
      "schema_not_ours",
      `${found.what} in schema ${schema} is not the platform's; drop or rename it`,
    );
}

const findRole = `SELECT rolcanlogin OR rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls AS may,
    EXISTS (SELECT FROM pg_auth_members m WHERE m.roleid = r.oid) AS has_members
  FROM pg_roles r WHERE rolname = $1`;

/** Makes both roles when they are missing; throws QueueRefused when somebody else has made one that is more than a group. */
export async function putRoles(session: Session): Promise<void> {
  for (const role of [queueGroup, agentRole]) {
    const [found] = await session.rows<{ may: boolean; has_members: boolean }>(findRole, [role]);
    if (found === undefined) await session.rows(`CREATE ROLE ${role} NOLOGIN`);
    else if (found.may || (role === agentRole && found.has_members))
      throw new QueueRefused("schema_not_ours", `role ${role} is not the platform's; drop or rename it`);
  }
}
