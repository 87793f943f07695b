import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { NodeImageObject } from "./node-image.ts";

export type UpdateKind = "engine_minor" | "image" | "guest_kernel" | "restart" | "keeper";

/** A pending update of a service. Times are milliseconds since 1970. */
export interface PendingUpdate {
  /**
   * Id of the image or kernel; `restart` for parameters that wait for a restart; `keeper-5` for a keeper of protocol 5.
   */
  readonly id: string;
  readonly kind: UpdateKind;
  readonly title: string;
  readonly description: string;
  /** Versions of engine or kernel, or their ids; null for a restart. */
  readonly from: string | null;
  readonly to: string | null;
  readonly urgent: boolean;
  readonly availableSince: number;
  /**
   * Time at which it is applied automatically; null if only a request applies it. A time in the past: as soon as the
   * limiter admits it.
   */
  readonly applyAt: number | null;
  readonly requiresRestart: boolean;
  /** Indexes on text may have to be rebuilt after it: it is applied only if the user accepts that. */
  readonly changesTextOrder: boolean;
  /** The obstacle that it has now, in a text that a user can act on. */
  readonly blocked: string | null;
  /** Why the data cannot be rolled back with it; null if they can, and if it does not change them. */
  readonly noSnapshot: string | null;
}

/** Facts besides the service from which updates are computed. */
export interface MaintenanceContext {
  /** Node images and guest kernels. */
  readonly images: readonly NodeImageObject[];
  /** Hosts of the service's machines, each once, by their last report. */
  readonly hosts: readonly HostObject[];
  /** Image of the service's machines; empty before there is one, and if engines run on the host itself. */
  readonly image: string;
  /** Guest kernel of its virtual machines; empty before it is known, and if they have none of their own. */
  readonly guestKernel: string;
  /** The last observation of the primary since its machine started. */
  readonly instance: InstanceObservation | undefined;
  /** Current and next keeper of each machine whose agent is connected and whose host reports the next one. */
  readonly keepers: readonly KeeperOfMachine[];
  /** Why the storage tier of its data has no snapshots; empty if it has, or if that is unknown. */
  readonly noSnapshots: string;
  /** Newest moment that can be restored, in milliseconds since 1970; absent if there is none. */
  readonly restorePoint?: number | undefined;
  readonly now: number;
}

/** Keeper protocol versions of a machine. */
export interface KeeperOfMachine {
  /** The keeper that it runs under; 0 if its agent does not report one. */
  readonly has: number;
  /** The keeper that it gets when it restarts. */
  readonly next: number;
}

export const restartId = "restart";
