import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { HostObject } from "#fleet/host/host.ts";
import type { NodeImageObject } from "./node-image.ts";

export type UpdateKind = "engine_minor" | "image" | "guest_kernel" | "restart" | "keeper";

/** One thing that waits to be done to a service. */
export interface PendingUpdate {
  /** Of an image or a kernel its id; `restart` for parameters that wait for a restart, `keeper-5` for a keeper of that protocol. */
  readonly id: string;
  readonly kind: UpdateKind;
  readonly title: string;
  readonly description: string;
  /** Versions of engine or kernel, or else their ids; null for a restart. */
  readonly from: string | null;
  readonly to: string | null;
  readonly urgent: boolean;
  readonly availableSince: number;
  /** When it begins by itself; null while something stands against that. A past time: as soon as its turn comes. */
  readonly applyAt: number | null;
  readonly requiresRestart: boolean;
  /** Indexes over text may have to be made again after it: only who says so gets it. */
  readonly changesTextOrder: boolean;
  /** What stands against it now, in words that a user can act on. */
  readonly blocked: string | null;
  /** Why the data cannot be rolled back with it; null when they can, and where nothing would change them. */
  readonly noSnapshot: string | null;
}

/** What updates are worked out from, besides the service. */
export interface MaintenanceWorld {
  /** Node images, and kernels of virtual machines. */
  readonly images: readonly NodeImageObject[];
  /** Those that the service's machines are on, each once, as they are or were last heard of. */
  readonly hosts: readonly HostObject[];
  /** Image that the service's machines run from; empty where engines of the host run, and before there is one. */
  readonly image: string;
  /** Kernel that its virtual machines boot from; empty where they have none of their own, and before it is known. */
  readonly guestKernel: string;
  /** What the primary's agent last told since its machine's start. */
  readonly instance: InstanceObservation | undefined;
  /** Of each of its machines whose agent is connected and whose host tells: the keeper that it runs under, and its next one. */
  readonly keepers: readonly KeeperOfMachine[];
  /** Why the tier that its data are in has no snapshots; empty where it has, and where that is not known. */
  readonly noSnapshots: string;
  /** Newest moment that a restore brings its data back to; absent where there is none. */
  readonly restorePoint?: number | undefined;
  readonly now: number;
}

/** Versions of a keeper's protocol. */
export interface KeeperOfMachine {
  /** 0 of an agent that tells none. */
  readonly has: number;
  /** Of the one that the machine gets when it is started again. */
  readonly next: number;
}

export const restartId = "restart";
