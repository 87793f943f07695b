import type { QueryResult, QueryStatistics, Translation } from "./responses.ts";
import type { QueryOrder } from "./requests.ts";
import { QueryMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Queries of a service: their statistics, running sessions, the query console, and assessments of scripts. */
export class Queries extends QueryMethods {
  /** The most expensive queries since the start of the service's statistics. */
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

  /** Starts a task that collects the statistics of `top`; `statistics` and `tasks.get` return its result. */
  start(
    serviceId: string,
    body: { readonly limit?: number; readonly sort_by?: QueryOrder } = {},
    options?: CallOptions,
  ): Promise<{ readonly task_id: string }> {
    return this.transport.request("POST", pathOf("managed-services", serviceId, "query-stats"), { ...options, body });
  }

  /** Translates a question to SQL by the installation's language model; nothing is run. */
  translate(
    serviceId: string,
    body: { readonly question: string; readonly database_name?: string },
    options?: CallOptions,
  ): Promise<Translation> {
    const path = pathOf("managed-services", serviceId, "ai-query", "translate");
    return this.transport.request("POST", path, { timeoutMs: 130_000, ...options, body });
  }

  /** Runs one read-only statement, in defaultdb by default. */
  execute(
    serviceId: string,
    query: { readonly sql: string; readonly database_name?: string },
    options?: CallOptions,
  ): Promise<QueryResult> {
    const path = pathOf("managed-services", serviceId, "ai-query", "execute");
    return this.transport.request("POST", path, { timeoutMs: 45_000, ...options, body: query });
  }
}
