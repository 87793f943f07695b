import { authOwner, authSchema } from "@holdfast/common/auth-schema/names.ts";
import { EngineRefused } from "../../engine-errors.ts";
import type { Session } from "../session.ts";

/** What is in the schema, or hangs on its tables, and is not its owner's. */
const foreignObjects = `
  WITH ours AS (SELECT oid AS role FROM pg_roles WHERE rolname = '${authOwner}'),
    place AS (SELECT oid AS id FROM pg_namespace WHERE nspname = '${authSchema}'),
    tables AS (SELECT c.oid AS id FROM pg_class c JOIN place ON c.relnamespace = place.id)
  SELECT kind || ' ' || name AS what FROM (
    SELECT 'relation' AS kind, relname::text AS name, relowner AS owner FROM pg_class JOIN place ON relnamespace = place.id
    UNION ALL SELECT 'function', proname, NULL FROM pg_proc JOIN place ON pronamespace = place.id
    UNION ALL SELECT 'operator', oprname, NULL FROM pg_operator JOIN place ON oprnamespace = place.id
    UNION ALL SELECT 'type', typname, typowner FROM pg_type JOIN place ON typnamespace = place.id
    UNION ALL SELECT 'trigger', tgname, NULL FROM pg_trigger t JOIN tables ON t.tgrelid = tables.id WHERE NOT tgisinternal
    UNION ALL SELECT 'rule', rulename, NULL FROM pg_rewrite r JOIN tables ON r.ev_class = tables.id
    UNION ALL SELECT 'policy', polname, NULL FROM pg_policy p JOIN tables ON p.polrelid = tables.id
    UNION ALL SELECT 'child table', inhrelid::regclass::text, NULL FROM pg_inherits i JOIN tables ON i.inhparent = tables.id
  ) AS found, ours WHERE owner IS DISTINCT FROM ours.role LIMIT 1`;

/** Throws EngineRefused where something at the schema's place is not the platform's. Nothing of it is called to find out. */
export async function refuseForeign(session: Session): Promise<void> {
  const [found] = await session.rows<{ what: string }>(foreignObjects);
  if (found !== undefined)
    throw new EngineRefused(`The ${found.what} in schema ${authSchema} is not the platform's; drop or rename it.`);
}
