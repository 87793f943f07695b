import type { Instance } from "./instance.ts";

/** What the engine counts of itself, by names of the catalog of metrics. */
export interface MetricsFacet {
  /** One look through one session, over within 3 s. Sessions of the platform are left out. */
  read(instance: Instance, signal: AbortSignal): Promise<EngineFigures>;
}

export interface EngineFigures {
  /** What is so at the moment of the look. */
  readonly gauges: Readonly<Record<string, number>>;
  /** Counters that only grow within an epoch; the metric is their growth by its unit of time. */
  readonly counters: Readonly<Record<string, number>>;
  /** Pairs of such counters; the metric is the growth of the part in percent of the growth of the whole. */
  readonly shares: Readonly<Record<string, { readonly part: number; readonly whole: number }>>;
  /** Names the time since which the counters count: another one says that they began anew. */
  readonly epoch: string;
  /** Metrics that this engine cannot tell as it is, each with the reason. */
  readonly absent: Readonly<Record<string, string>>;
}

export type QueryOrder = "total_time" | "calls" | "mean_time" | "rows";

export function isQueryOrder(text: string): text is QueryOrder {
  return text === "total_time" || text === "calls" || text === "mean_time" || text === "rows";
}

/** What the engine counted of each query that it ran, those of the platform left out. */
export interface QueryStatsFacet {
  read(
    instance: Instance,
    asked: { readonly limit: number; readonly order: QueryOrder },
    signal: AbortSignal,
  ): Promise<{
    readonly queries: readonly EngineQueryStatistic[];
    readonly totalCount: number;
    readonly collectedAt: Date;
    /** When counting began. */
    readonly since: Date;
  }>;
}

export interface EngineQueryStatistic {
  /** Without strings and remarks; empty for one that cannot be shown. */
  readonly query: string;
  readonly calls: number;
  readonly totalMs: number;
  readonly meanMs: number;
  readonly rows: number;
  readonly cacheHitRatio: number | undefined;
  readonly queryId: string;
  readonly database: string;
}

/** A session by its process and start: a process id that is used again is another one. */
export interface EngineSession {
  readonly pid: number;
  /** Microseconds since 1970. */
  readonly startedUs: bigint;
}

/** Sessions of users that do something. */
export interface SessionsFacet {
  /** The oldest first. */
  running(
    instance: Instance,
    limit: number,
    signal: AbortSignal,
  ): Promise<{ readonly queries: readonly EngineRunningQuery[]; readonly truncated: boolean }>;
  /** Ends its query, or all of it. Not found is also one of the platform. */
  signal(
    instance: Instance,
    session: EngineSession,
    how: { readonly terminate: boolean },
    signal: AbortSignal,
  ): Promise<{ readonly found: boolean }>;
}

export interface EngineRunningQuery {
  readonly session: EngineSession;
  readonly username: string;
  readonly database: string;
  readonly state: string;
  /** Empty while it waits for nothing. */
  readonly wait: string;
  readonly blockedBy: readonly number[];
  readonly ageSeconds: number;
  readonly transactionSeconds: number | undefined;
  readonly client: string;
  readonly query: string;
}

/** Runs one statement that the controller has judged, so that nothing can come of it but its answer. */
export interface ReadOnlyQueryFacet {
  run(instance: Instance, query: ReadOnlyQuery, signal: AbortSignal): Promise<ReadOnlyAnswer>;
}

export interface ReadOnlyQuery {
  readonly database: string;
  readonly sql: string;
  /** Names of functions that it calls, and of types, without a schema or in the engine's own. */
  readonly functions: readonly string[];
  readonly types: readonly string[];
  /** What it names in another schema: a "function", "operator" or "type". */
  readonly qualified: readonly { readonly kind: string; readonly schema: string; readonly name: string }[];
  /** Relations that it reads, quoted. */
  readonly relations: readonly string[];
  readonly rowsMax: number;
  readonly bytesMax: number;
  readonly timeoutMs: number;
}

export type ReadOnlyAnswer =
  | {
      readonly columns: readonly string[];
      /** JSON text of a list of lists. */
      readonly rows: string;
      readonly rowCount: number;
      readonly executionMs: number;
      readonly truncated: boolean;
    }
  /** The position counts characters of `sql` from 1 on, 0 for none; `name` is of the function or relation that is meant, if any. */
  | { readonly refusal: { readonly message: string; readonly position: number; readonly name: string } };
