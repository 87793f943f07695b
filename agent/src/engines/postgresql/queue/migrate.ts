import { inTransaction, type Session } from "../session.ts";
import { refuseForeign, putRoles } from "./ownership.ts";
import { mapRefusals } from "./queue-refused.ts";
import { roles } from "./schema/grants.ts";
import { schema } from "./schema/names.ts";
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
