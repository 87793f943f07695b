/** Endpoints of webhooks and what came of deliveries. Times are RFC 3339 texts in UTC. */

/** "standard" tries three times in 3 s; "extended" goes on five times more, the last 10 hours after the one before. */
export type RetryPolicy = "standard" | "extended";

/** An endpoint that gets events as signed requests. */
export interface Webhook {
  readonly id: string;
  readonly url: string;
  /** Types that the endpoint gets; null for all, an empty list for none. */
  readonly events: readonly string[] | null;
  readonly active: boolean;
  readonly retry_policy: RetryPolicy;
  /** When the platform switched it off because it had failed for 5 days. */
  readonly disabled_at: string | null;
  /** Says so when deliveries go over plain HTTP, where others can read them. */
  readonly warning: string | null;
  readonly created_at: string;
  readonly updated_at: string;
}

/** An endpoint with its secret. */
export interface CreatedWebhook extends Webhook {
  /** 64 hex characters that verifyWebhook wants; shown this once. */
  readonly secret: string;
}

/** An endpoint to be made. */
export interface NewWebhook {
  readonly url: string;
  /** Types that it gets; all when left out or null. */
  readonly events?: readonly string[] | null | undefined;
  readonly retry_policy?: RetryPolicy | undefined;
}

/** Only the keys that are present change. */
export interface WebhookChange {
  readonly url?: string | undefined;
  readonly events?: readonly string[] | null | undefined;
  /** True also ends a switch-off by the platform. */
  readonly active?: boolean | undefined;
  readonly retry_policy?: RetryPolicy | undefined;
}

/** The new signing secret. */
export interface RotatedSecret {
  /** Shown this once. */
  readonly secret: string;
  /** Until when the old one signs too; null when it ended at once. */
  readonly previous_valid_until: string | null;
}

/** One attempt, recorded when it has ended. */
export interface Delivery {
  readonly id: string;
  readonly webhook_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly attempt: number;
  /** null when the endpoint did not answer. */
  readonly response_status: number | null;
  readonly error_message: string | null;
  /** When the endpoint took it; null when it did not. */
  readonly delivered_at: string | null;
  readonly created_at: string;
  readonly duration_ms: number;
}

/** What the platform has accepted to do. */
export interface Accepted {
  readonly message: string;
}
