import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/** A proxy process; its directory stores its id. Every change of its leases requires the revision of this object. */
export type InferenceProcess = Resource<Readonly<Record<string, never>>, InferenceProcessStatus>;

export const inferenceProcessKind = defineKind<InferenceProcess>("inference-process");

export interface InferenceProcessStatus {
  /** Raised by each new stream; changes by older streams are refused. */
  readonly epoch: number;
  /** Number of the last batch of settlements that is in the accounts. */
  readonly landedBatch: number;
  /** Id of the controller that it follows; null if it follows none. */
  readonly controllerId: string | null;
  readonly seenAt: number;
  /** Addresses that it listens on, as `host:port`; absent if it reported none. */
  readonly listeners?: readonly string[];
  /**
   * Time at which an operator declared it lost, in milliseconds since 1970; null or absent otherwise, and after it has
   * connected again.
   */
  readonly lostAt?: number | null;
}
