/** What can be created here: engines, plans, storage, zones, prices and limits. */
export interface Catalog {
  readonly engines: readonly {
    readonly database_type: string;
    readonly title: string;
    readonly port: number;
    readonly versions: readonly {
      readonly version: string;
      readonly available: boolean;
      readonly reason: string | null;
    }[];
    readonly default_version: string;
    readonly parameters: readonly {
      readonly name: string;
      readonly type: string;
      readonly description: string;
      readonly default: string | null;
      readonly minimum: string | null;
      readonly maximum: string | null;
      readonly values: readonly string[];
      readonly unit: string | null;
      readonly needs_restart: boolean;
      readonly versions: readonly string[];
    }[];
    readonly extensions: readonly string[];
  }[];
  readonly plans: readonly {
    readonly plan_name: string;
    readonly kind: string;
    readonly vcpu: number;
    readonly memory_gb: number;
    readonly monthly_cost: number;
  }[];
  readonly storage_tiers: readonly {
    readonly storage_tier: string;
    readonly medium: string;
    readonly use: string;
    readonly monthly_cost_per_gb: number;
  }[];
  readonly zones: readonly { readonly zone: string; readonly title: string }[];
  readonly limits: {
    readonly storage_size_gb_min: number;
    readonly storage_size_gb_max: number;
    readonly ttl_hours_min: number;
    readonly ttl_hours_max: number;
    readonly allowed_cidrs_max: number;
    readonly tags_max: number;
  };
  /** Networks that may connect when a request names none. */
  readonly default_allowed_cidrs: readonly string[];
  /** ISO 4217 code of every price. */
  readonly currency: string;
  /** Every metric there is a name for. */
  readonly metrics: readonly {
    readonly name: string;
    readonly unit: string;
    /** Those that have it; empty means all. */
    readonly engines: readonly string[];
    /** "gauge" is what is at the time of a sample, "rate" what came since the sample before, by its time. */
    readonly kind: string;
    readonly meaning: string;
    /** "machine" or "engine"; null for a metric that this version does not collect. */
    readonly source: string | null;
  }[];
}
