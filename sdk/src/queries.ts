import type { QueryResult, QueryStatistics, Translation } from "./answers.ts";
import type { QueryOrder } from "./inputs.ts";
import { QueryMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Queries of a service: their statistics, running sessions, and the query console. */
export class Queries extends QueryMethods {
  /** The queries that take most of the service's time, since its statistics began. */
  top(
    serviceId: string,
    query: { readonly limit?: number; readonly order?: QueryOrder } = {},
    options?: CallOptions,
  ): Promise<QueryStatistics> {
    return this.transport.request("GET", pathOf("managed-services", serviceId, "metrics", "query-stats"), {
      ...options,
      query,
    });
  }

  /** The same, answered later: `statistics` and `tasks.get` have the result. */
  start(
    serviceId: string,
    body: { readonly limit?: number; readonly sort_by?: QueryOrder } = {},
    options?: CallOptions,
  ): Promise<{ readonly task_id: string }> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "query-stats"), { ...options, body });
  }

  /** Asks the installation's model for a statement; nothing is run. */
  translate(
    serviceId: string,
    asked: { readonly question: string; readonly database_name?: string },
    options?: CallOptions,
  ): Promise<Translation> {
    const path = pathOf("managed-services", serviceId, "ai-query", "translate");
    return this.transport.request("POST", path, { timeoutMs: 130_000, ...options, body: asked });
  }

  /** Runs one statement that only reads; defaultdb when no database is named. */
  execute(
    serviceId: string,
    query: { readonly sql: string; readonly database_name?: string },
    options?: CallOptions,
  ): Promise<QueryResult> {
    const path = pathOf("managed-services", serviceId, "ai-query", "execute");
    return this.transport.request("POST", path, { timeoutMs: 45_000, ...options, body: query });
  }
}
