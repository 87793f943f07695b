import { schema } from "./names.ts";

/** An SQL function. Name and types are a public API, see docs/how-to/queues.md. */
export interface SqlFunction {
  readonly name: string;
  /** Parameters with their types and defaults. */
  readonly parameters: string;
  readonly returns: string;
  readonly body: string;
  /** Planner settings, for statements whose plan must not depend on statistics. */
  readonly settings?: string;
}

/**
 * Settings that force a plan which is right for any content of the table. Statistics of a queue are outdated quickly,
 * and a session would reuse a plan for an empty table when it is full. Changes select rows by an array and never by a
 * join: with statistics of an empty queue the planner would read all messages and compare each of them with each
 * requested one.
 */
export const planSettings = `SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan`;

/**
 * Statement that creates or replaces the function. It runs with the caller's privileges and resolves no names of users.
 */
export function functionSql({ name, parameters, returns, body, settings = "" }: SqlFunction): string {
  return `CREATE OR REPLACE FUNCTION ${schema}.${name}(${parameters}) RETURNS ${returns} LANGUAGE plpgsql
SECURITY INVOKER SET search_path = pg_catalog, pg_temp ${settings} AS $body$
#variable_conflict use_column
${body}
$body$`;
}
