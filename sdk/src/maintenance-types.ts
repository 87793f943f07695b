import type { Operation } from "./operation-types.ts";

/** A day of the week, in UTC. */
export type Weekday = "monday" | "tuesday" | "wednesday" | "thursday" | "friday" | "saturday" | "sunday";
/**
 * "engine_minor" brings another minor version, "image" newer packages, "guest_kernel" another kernel of its virtual machines,
 * "restart" parameters that wait for one.
 */
export type UpdateKind = "engine_minor" | "image" | "guest_kernel" | "restart";

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
  /** Version of the engine or of the kernel, or else image or kernel; null for a restart. */
  readonly from: string | null;
  readonly to: string | null;
  readonly available_since: string;
  readonly requires_restart: boolean;
  /** Indexes over text may have to be made again after it; it is applied only when that is accepted. */
  readonly changes_text_order: boolean;
  /** What stands against it now. */
  readonly blocked_reason: string | null;
  /** Why only the image can be taken back and not the data; null when both can, and where nothing would change the data. */
  readonly no_snapshot_reason: string | null;
}

/** What waits to be done to a service, and when. */
export interface Maintenance {
  readonly service_id: string;
  readonly window: MaintenanceWindow;
  readonly window_is_default: boolean;
  readonly next_window_from: string;
  readonly next_window_until: string;
  /** Node image; null where engines of the host run. */
  readonly image: string | null;
  /** Such as "17.11"; null while it is not known. */
  readonly engine_version: string | null;
  readonly updates: readonly PendingUpdate[];
  /** The one that applies updates now. */
  readonly operation: Operation | null;
  /** Why the platform begins nothing by itself at present. */
  readonly held: string | null;
  /** Kernel that its virtual machines boot from; null where machines have none of their own. */
  readonly guest_kernel: string | null;
}
