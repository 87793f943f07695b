import { create } from "@bufbuild/protobuf";
import type { ReadOnlyQuery, ReadOnlyResult } from "@holdfast/agent/engines/insight-facets.ts";
import { createPostgresqlDriver } from "@holdfast/agent/engines/postgresql/driver.ts";
import { createGuardThread } from "@holdfast/controller/insight/query-console/guard-thread.ts";
import { postgresql } from "@holdfast/controller/insight/query-console/postgresql/console.ts";
import { requestPosition } from "@holdfast/controller/insight/query-console/statement-positions.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { trapSchema } from "./schemas.ts";

export const consoleVersion = "17";
const password = "a password";

/** The names that the guard finds in a statement; empty, the agent's own check has nothing to refuse. */
export const noNames = { functions: [], types: [], relations: [], qualified: [] };

export type ConsoleMachine = Awaited<ReturnType<typeof startConsoleMachine>>;

/** A PostgreSQL with traps for the query console, the console's guard, and a session of its user in `defaultdb`. */
export async function startConsoleMachine() {
  const guard = createGuardThread(postgresql);
  const user = create(EngineUserSchema, { username: "app_user", role: "admin", verifier: scramVerifier(password) });
  const machine = await createEngineMachine(
    async (deps) => createPostgresqlDriver(deps),
    "postgresql",
    consoleVersion,
    {
      users: [user],
    },
  );
  await machine.bringUp();
  const connect = (database = "defaultdb") => connectPostgresql(machine, { user: "app_user", password, database });
  const owner = await connect();
  await owner.query(trapSchema);

  /** Runs a statement in the engine, without the guard. */
  async function run(query: ReadOnlyQuery): Promise<ReadOnlyResult> {
    const response = await machine.driver.readOnlyQuery?.run(machine.instance, query, machine.signal);
    if (response === undefined) throw new Error("the driver has no console");
    return response;
  }

  /** Runs a statement as the API does: the guard checks it, and the engine gets its printed form. */
  async function execute(sql: string, change: Partial<ReadOnlyQuery> = {}): Promise<ReadOnlyResult> {
    const verdict = await guard.check(sql);
    if ("refused" in verdict) return { refusal: { message: verdict.refused, position: verdict.position, name: "" } };
    const limits = { rowsMax: 1_000, bytesMax: 8 << 20, timeoutMs: 10_000, ...change };
    const response = await run({ database: "defaultdb", ...verdict, ...limits });
    if (!("refusal" in response)) return response;
    return { refusal: { ...response.refusal, position: requestPosition(response.refusal, verdict) } };
  }

  return {
    machine,
    owner,
    guard,
    connect,
    run,
    execute,
    /** The result with its rows; throws if the statement is refused. */
    async resultOf(sql: string, change: Partial<ReadOnlyQuery> = {}) {
      const response = await execute(sql, change);
      if ("refusal" in response) throw new Error(`${sql}: ${response.refusal.message}`);
      return { ...response, rows: JSON.parse(response.rows) as unknown[][] };
    },
    /** State that an effect of a statement would change. */
    async traces(): Promise<unknown> {
      const { rows } = await owner.query(tracesSql);
      return rows[0];
    },
    async remove(): Promise<void> {
      await owner.end();
      await guard.close();
      await machine.remove();
    },
  };
}

const tracesSql = `SELECT
  (SELECT md5(string_agg(orders::text, ',' ORDER BY id)) FROM orders) AS orders,
  (SELECT count(*) FROM harm_done) AS harmed, (SELECT is_called FROM harm_counted) AS counted,
  (SELECT last_value FROM orders_id_seq) AS sequence,
  (SELECT count(*) FROM pg_class) AS relations, (SELECT count(*) FROM pg_proc) AS functions,
  (SELECT count(*) FROM pg_roles) AS roles, (SELECT count(*) FROM pg_extension) AS extensions,
  (SELECT count(*) FROM pg_largeobject_metadata) AS objects, (SELECT count(*) FROM pg_prepared_xacts) AS prepared,
  (SELECT count(*) FROM pg_replication_slots) AS slots, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks,
  (SELECT md5(string_agg(relacl::text, ',' ORDER BY oid)) FROM pg_class) AS rights,
  (SELECT count(*) FROM pg_description) AS remarks`;
