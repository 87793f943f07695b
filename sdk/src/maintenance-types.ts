/** A day of the week, in UTC. */
export type Weekday = "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";
/** "engine_minor" brings another minor version, "image" newer packages, "restart" parameters that wait for one. */
export type UpdateKind = "engine_minor" | "image" | "restart";

/** Two hours of each week, from this hour on in UTC, in which updates may begin by themselves. */
export interface MaintenanceWindow {
  readonly day: Weekday;
  readonly hour: number;
}

/** A pending update in short. */
export interface PendingUpdateSummary {
  readonly id: string;
  readonly kind: UpdateKind;
  /** It waits for the window no longer than its notice. */
  readonly urgent: boolean;
  /** When it begins by itself; null when only a request applies it. */
  readonly apply_at: string | null;
}

/** Something that waits to be done to a service. */
export interface PendingUpdate extends PendingUpdateSummary {
  readonly title: string;
  readonly description: string;
  /** Engine version or image; null for a restart. */
  readonly from: string | null;
  readonly to: string | null;
  readonly available_since: string;
  readonly requires_restart: boolean;
  /** Indexes over text may have to be made again after it; it is applied only when that is accepted. */
  readonly changes_text_order: boolean;
  /** What stands against it now. */
  readonly blocked_reason: string | null;
}
