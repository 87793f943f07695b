import { type Feature, features, refusedFeature } from "../parse/features.ts";
import { BatchCache } from "./batch-cache.ts";
import type { SqlError } from "./sql-error.ts";

/** Counts of the front end since its start, without any text of clients: features are rows of `parse/features.ts`. */
export interface UsageReport {
  /** Start of counting, in milliseconds since 1970. */
  readonly sinceMs: number;
  /** Sessions that are signed in. */
  readonly sessions: number;
  /** Batches and calls of procedures that clients sent. */
  readonly batches: number;
  /** Errors that clients received. */
  readonly errors: number;
  /** Texts of T-SQL that were parsed, and those of them whose syntax tree was in the cache. */
  readonly cacheLookups: number;
  readonly cacheHits: number;
  /** Refused features, the most frequent first. */
  readonly features: readonly { readonly feature: string; readonly count: number; readonly advice: string }[];
}

/** Counters of one process. */
export class Usage {
  sessions = 0;
  batches = 0;
  readonly cache = new BatchCache();
  #errors = 0;
  readonly #sinceMs: number;
  readonly #features = new Map<Feature, number>();
  /** An error in TRY may reach the client later; it counts once. */
  readonly #counted = new WeakSet<SqlError>();

  constructor(sinceMs: number) {
    this.#sinceMs = sinceMs;
  }

  /** Counts an error that a client receives. */
  error(error: SqlError): void {
    this.#errors += 1;
    this.refusal(error);
  }

  /** Counts the feature that the error refuses, also of an error that a CATCH handles. */
  refusal(error: SqlError): void {
    const feature = refusedFeature(error);
    if (feature === undefined || this.#counted.has(error)) return;
    this.#counted.add(error);
    this.#features.set(feature, (this.#features.get(feature) ?? 0) + 1);
  }

  report(): UsageReport {
    const { sessions, batches } = this;
    const counts = [...this.#features].map(([feature, count]) => ({
      feature,
      count,
      advice: features.get(feature)?.advice ?? "",
    }));
    return {
      sinceMs: this.#sinceMs,
      sessions,
      batches,
      errors: this.#errors,
      cacheLookups: this.cache.lookups,
      cacheHits: this.cache.hits,
      features: counts.toSorted((a, b) => b.count - a.count),
    };
  }
}
