import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { NodeImageObject } from "./node-image.ts";

export type UpdateKind = "engine_minor" | "image" | "guest_kernel" | "restart" | "keeper";

/** A pending update of a service. Times are milliseconds since 1970. */
export interface PendingUpdate {
  /**
   * Id of the image or kernel; `restart` for parameters that await a restart; such as `keeper-5` for protocol 5 of the
   * keeper.
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
   * Time at which the update is applied automatically; null if only a request applies it. A past time means as soon as
   * the rollout limiter admits it.
   */
  readonly applyAt: number | null;
  readonly requiresRestart: boolean;
  /** True if indexes on text may need a rebuild afterwards, so that it is applied only if the user accepts that. */
  readonly changesTextOrder: boolean;
  /** The obstacle that prevents the update now, with advice for users; null if there is none. */
  readonly blocked: string | null;
  /**
   * Reason why the data cannot be rolled back with the update; null if they can, or if it does not change the image.
   */
  readonly snapshotProblem: string | null;
}

/** The facts, in addition to the service, from which pending updates are computed. */
export interface MaintenanceContext {
  /** Node images and guest kernels. */
  readonly images: readonly NodeImageObject[];
  /** Hosts of the service's machines, each once, by their last report. */
  readonly hosts: readonly HostObject[];
  /** Image of the service's machines; empty before it is known, and if engines run on the host without an image. */
  readonly image: string;
  /** Guest kernel of the service's virtual machines; empty before it is known, and for machines without one. */
  readonly guestKernel: string;
  /** The last observation of the primary since its machine started. */
  readonly instance: InstanceObservation | undefined;
  /** Current and next keeper of each machine whose agent is connected and whose host reports the next one. */
  readonly keepers: readonly KeeperOfMachine[];
  /** Reason why the storage tier of the data has no snapshots; empty if it has snapshots, or if that is unknown. */
  readonly snapshotProblem: string;
  /** Newest time that can be restored, in milliseconds since 1970; absent if there is none. */
  readonly restorePoint?: number | undefined;
  readonly now: number;
}

/** Keeper protocol versions of a machine. */
export interface KeeperOfMachine {
  /** Protocol of the keeper that the machine runs under; 0 if its agent does not report one. */
  readonly has: number;
  /** Protocol of the keeper that the machine gets at its next restart. */
  readonly next: number;
}

export const restartId = "restart";
