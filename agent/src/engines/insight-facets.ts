import type { Instance } from "./instance.ts";

/** Statistics that the engine collects about itself, by names of the metric catalog. */
export interface MetricsFacet {
  /** Reads all statistics in one session within 3 s. The platform's own sessions are excluded. */
  read(instance: Instance, signal: AbortSignal): Promise<EngineMetrics>;
}

export interface EngineMetrics {
  /** Current values. */
  readonly gauges: Readonly<Record<string, number>>;
  /** Counters that only grow within an epoch. The metric is their growth per unit of time. */
  readonly counters: Readonly<Record<string, number>>;
  /** Pairs of such counters. The metric is the growth of `part` in percent of the growth of `total`. */
  readonly ratios: Readonly<Record<string, { readonly part: number; readonly total: number }>>;
  /** Identifies the period that the counters count in; a new value means that they were reset. */
  readonly epoch: string;
  /** Metrics that this engine cannot report now, each with the reason. */
  readonly absent: Readonly<Record<string, string>>;
}

export type QueryOrder = "total_time" | "calls" | "mean_time" | "rows";

export function isQueryOrder(text: string): text is QueryOrder {
  return text === "total_time" || text === "calls" || text === "mean_time" || text === "rows";
}

/** Statistics of each query that the engine ran for users. The platform's queries are excluded. */
export interface QueryStatsFacet {
  read(
    instance: Instance,
    options: { readonly limit: number; readonly order: QueryOrder },
    signal: AbortSignal,
  ): Promise<{
    readonly queries: readonly EngineQueryStatistic[];
    readonly totalCount: number;
    readonly collectedAt: Date;
    /** Start of counting. */
    readonly since: Date;
  }>;
}

export interface EngineQueryStatistic {
  /** Query without string literals and comments; empty if it cannot be redacted. */
  readonly query: string;
  readonly calls: number;
  readonly totalMs: number;
  readonly meanMs: number;
  readonly rows: number;
  readonly cacheHitRatio: number | undefined;
  readonly queryId: string;
  readonly database: string;
}

/** A session by its process id and start, since process ids are reused. */
export interface EngineSession {
  readonly pid: number;
  /** Start in microseconds since 1970. */
  readonly startedUs: bigint;
}

/** Users' sessions that are not idle. */
export interface SessionsFacet {
  /** Oldest first. */
  running(
    instance: Instance,
    limit: number,
    signal: AbortSignal,
  ): Promise<{ readonly queries: readonly EngineRunningQuery[]; readonly truncated: boolean }>;
  /**
   * Cancels the session's query or, with `terminate`, ends the session. The platform's own sessions count as not found.
   */
  signal(
    instance: Instance,
    session: EngineSession,
    options: { readonly terminate: boolean },
    signal: AbortSignal,
  ): Promise<{ readonly found: boolean }>;
}

export interface EngineRunningQuery {
  readonly session: EngineSession;
  readonly username: string;
  readonly database: string;
  readonly state: string;
  /** Wait event, such as `Lock: relation`; empty while it waits for nothing. */
  readonly wait: string;
  readonly blockedBy: readonly number[];
  readonly ageSeconds: number;
  readonly transactionSeconds: number | undefined;
  readonly client: string;
  readonly query: string;
}

/** Unsupported features that clients of the engine's front end used, without any text of them. */
export interface UnsupportedFeaturesFacet {
  read(
    instance: Instance,
    signal: AbortSignal,
  ): Promise<{
    readonly features: readonly { readonly feature: string; readonly count: number; readonly advice: string }[];
    /** Start of counting. */
    readonly since: Date;
  }>;
}

/** Runs one statement that the controller has checked. It can have no effect but its result. */
export interface ReadOnlyQueryFacet {
  run(instance: Instance, query: ReadOnlyQuery, signal: AbortSignal): Promise<ReadOnlyResult>;
}

export interface ReadOnlyQuery {
  readonly database: string;
  readonly sql: string;
  /** Functions that it calls and types that it names, without a schema or in `pg_catalog`. */
  readonly functions: readonly string[];
  readonly types: readonly string[];
  /** Names in another schema; `kind` is `function`, `operator` or `type`. */
  readonly qualified: readonly { readonly kind: string; readonly schema: string; readonly name: string }[];
  /** Relations that it reads, as quoted identifiers. */
  readonly relations: readonly string[];
  readonly rowsMax: number;
  readonly bytesMax: number;
  readonly timeoutMs: number;
}

export type ReadOnlyResult =
  | {
      readonly columns: readonly string[];
      /** Rows as JSON, an array of arrays. */
      readonly rows: string;
      readonly rowCount: number;
      readonly executionMs: number;
      readonly truncated: boolean;
    }
  /**
   * `position` counts characters of `sql` from 1 on, 0 for none. `name` is the function or relation at fault, if there
   * is one.
   */
  | { readonly refusal: { readonly message: string; readonly position: number; readonly name: string } };
