import { defineKind } from "#kernel/store/kind.ts";
import type { Resource } from "#kernel/store/resource.ts";

/** A process of the proxy, by the id of its directory. Every change of what it holds names the revision of this object. */
export type InferenceProcess = Resource<Readonly<Record<string, never>>, InferenceProcessStatus>;

export const inferenceProcessKind = defineKind<InferenceProcess>("inference-process");

export interface InferenceProcessStatus {
  /** Raised with each stream: what an older one still wants to change is refused. */
  readonly epoch: number;
  /** The last batch of settlements that is in the accounts. */
  readonly landedBatch: number;
  /** The controller that it follows; null while it follows none. */
  readonly controllerId: string | null;
  readonly seenAt: number;
  /** host:port that it listens on; absent where it reported none, as earlier versions do. */
  readonly listeners?: readonly string[];
  /** When an operator declared that it never comes back; null or absent while nobody has, and once it is back all the same. */
  readonly lostAt?: number | null;
}
