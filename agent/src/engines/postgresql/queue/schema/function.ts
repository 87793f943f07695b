import { schema } from "./names.ts";

/** What makes a function: its name and types are a promise to users, see docs/queues.md. */
export interface SqlFunction {
  readonly name: string;
  /** Parameters with their types and defaults. */
  readonly parameters: string;
  readonly returns: string;
  readonly body: string;
  /** Settings of the planner, for statements whose plan must not depend on statistics. */
  readonly settings?: string;
}

/**
 * Plans that are right whatever the table holds: statistics of a queue are those of a moment, and a plan made while it was empty
 * would be kept by a session when it is full. A change names its rows by an array, never by a join: statistics of an empty queue
 * make the planner read all messages first, and compare each of them with each that is asked for.
 */
export const ownPlans = `SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan`;

/** The statement that makes or replaces it. It runs with the rights of who calls it, and finds no name of users. */
export function functionSql({ name, parameters, returns, body, settings = "" }: SqlFunction): string {
  return `CREATE OR REPLACE FUNCTION ${schema}.${name}(${parameters}) RETURNS ${returns} LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp ${settings} AS $body$
#variable_conflict use_column
${body}
$body$`;
}
