import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createQueue } from "@holdfast/sdk/queue/index.ts";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import { functions, statements } from "@holdfast/testing/engines/queue-statements.ts";
import { createQueues } from "./queues.ts";
import { migrate, putRoles, schemaVersionOf } from "./migrate.ts";
import { createQueue as registerQueue } from "./stored-queues.ts";
import { roles } from "./schema/grants.ts";
import { schema } from "./schema/names.ts";
import { versions } from "./schema/versions.ts";

const schemas = join(import.meta.dirname, "../../../../../testing/src/engines/queue-schemas");
const newest = versions.length;
const settings = { visibilityTimeoutSeconds: 30, maxAttempts: 5, dlqEnabled: true };

describe.skipIf(!hasEngine("postgresql", "17"))("queues with an older schema version", () => {
  let database: QueueDatabase;
  const pools: pg.Pool[] = [];
  beforeAll(async () => {
    database = await createQueueDatabase("17", { withSchema: false });
  });
  afterAll(async () => {
    for (const pool of pools) await pool.end();
    await database?.remove();
  });

  /** A database with the schema that releases of this version created. */
  async function databaseOf(version: number): Promise<{ name: string; pool: pg.Pool }> {
    const name = `version_${version}`;
    await database.asPlatform((session) => session.rows(`CREATE DATABASE ${name} OWNER app_user`));
    await database.asPlatform(async (session) => {
      await putRoles(session);
      for (const statement of [...roles, `CREATE SCHEMA ${schema}`]) await session.rows(statement);
      for (let n = 1; n <= version; n += 1) await session.rows(readFileSync(join(schemas, `version-${n}.sql`), "utf8"));
      await session.rows(`INSERT INTO ${schema}.meta (version, service_id) VALUES ($1, $2)`, [
        version,
        database.machine.instance.spec.serviceId,
      ]);
      for (const queue of ["sdk", "raw", "functions"])
        await registerQueue(session, { id: `${name}-${queue}`, name: queue, ...settings });
    }, name);
    const pool = new pg.Pool({ ...database.poolConfig, database: name, max: 8 });
    pools.push(pool);
    return { name, pool };
  }

  /** The schema's objects and privileges, from the catalog. */
  const shapeOf = (name: string) =>
    database.asPlatform(
      (session) =>
        session.rows(
          `SELECT pg_get_functiondef(oid) AS what, proacl::text AS rights FROM pg_proc WHERE pronamespace = '${schema}'::regnamespace
           UNION ALL SELECT pg_get_triggerdef(t.oid), NULL FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
             WHERE c.relnamespace = '${schema}'::regnamespace
           UNION ALL SELECT indexdef, NULL FROM pg_indexes WHERE schemaname = '${schema}'
           UNION ALL SELECT c.relname || ' ' || coalesce(c.reloptions::text, '') || coalesce((SELECT string_agg(
               concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(d.adbin, d.adrelid)), ', ' ORDER BY attnum)
               FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
               WHERE a.attrelid = c.oid AND attnum > 0), ''), c.relacl::text
             FROM pg_class c WHERE c.relnamespace = '${schema}'::regnamespace AND c.relkind IN ('r', 'S')
           ORDER BY what`,
        ),
      name,
    );

  it.each(versions.map((_, index) => index + 1).slice(0, -1))(
    "keep working from version %i on, in open transactions, while the agent migrates them",
    async (version) => {
      const { name, pool } = await databaseOf(version);
      const sent: Record<string, string[]> = { sdk: [], raw: [], functions: [] };
      const acked: Record<string, string[]> = { sdk: [], raw: [], functions: [] };
      let isFinished = false;

      const queue = createQueue<{ n: number }>({ pool, queue: "sdk" });
      const errors: unknown[] = [];
      const worker = queue.work(({ id }) => void acked["sdk"]?.push(id), {
        onError: (error) => errors.push(error),
      });
      const sending = (async () => {
        for (let n = 0; !isFinished; n += 1) sent["sdk"]?.push(...(await queue.enqueue([{ n }, { n }])));
      })();
      /** A client that enqueues and works with statements that it prepares once. */
      const workBy = async (of: "raw" | "functions", sql: typeof statements) => {
        const client = await pool.connect();
        const ids = async (statement: keyof typeof statements, values: unknown[]) =>
          (await client.query<{ id: string }>({ name: `${of} ${statement}`, text: sql[statement], values })).rows.map(
            ({ id }) => id,
          );
        for (let n = 0, isEmpty = false; !isFinished || !isEmpty; n += 1) {
          if (!isFinished) sent[of]?.push(...(await ids("enqueue", [of, { n }, 0])));
          await client.query("BEGIN");
          const claimed = await ids("claim", [of, `${of}-${n}`, 2, 30]);
          await ids("extend", [of, `${of}-${n}`, claimed, 60]);
          await client.query("COMMIT");
          acked[of]?.push(...(await ids("ack", [of, `${of}-${n}`, claimed])));
          isEmpty = claimed.length === 0;
        }
        client.release();
      };
      const working = Promise.all([workBy("raw", statements), workBy("functions", functions)]);
      const goOn = async () => {
        const before = Object.values(acked).map(({ length }) => length);
        await expect
          .poll(() => Object.values(acked).every(({ length }, at) => length > (before[at] ?? 0) + 20))
          .toBe(true);
      };

      await goOn();
      const open = await pool.connect();
      await open.query("BEGIN");
      const [pending] = (await open.query<{ id: string }>(functions.enqueue, ["functions", { pending: true }, 0])).rows;
      // A started agent does this without a request.
      await createQueues().maintain(database.machine.instance, database.machine.signal);
      expect(await database.asPlatform(schemaVersionOf, name)).toBe(newest);
      await goOn();
      await open.query("COMMIT");
      open.release();
      sent["functions"]?.push(pending?.id ?? "");
      await goOn();

      isFinished = true;
      await Promise.all([sending, working]);
      await expect.poll(() => acked["sdk"]?.length).toBe(sent["sdk"]?.length);
      expect(await worker.stop()).toEqual({ acked: sent["sdk"]?.length, nacked: 0, lost: 0 });
      expect(errors).toEqual([]);
      const inOrder = (ids: readonly string[] = []) => ids.toSorted((a, b) => Number(a) - Number(b));
      for (const of of Object.keys(sent)) expect(inOrder(acked[of]), of).toEqual(inOrder(sent[of]));
      const remaining = `SELECT (SELECT count(*)::int FROM ${schema}.messages) AS ready, (SELECT count(*)::int FROM ${schema}.dead_messages) AS dead`;
      expect((await pool.query(remaining)).rows).toEqual([{ ready: 0, dead: 0 }]);

      const { serviceId } = database.machine.instance.spec;
      await database.asPlatform((session) => migrate(session, { serviceId }));
      expect(await shapeOf(name)).toEqual(await shapeOf("defaultdb"));
    },
  );
});
