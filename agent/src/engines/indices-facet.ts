import type { Instance } from "./instance.ts";

/** Indices of a search engine. Those of the platform and of the engine are left out everywhere. */
export interface IndicesFacet {
  /** All indices, by name. */
  list(instance: Instance, signal: AbortSignal): Promise<EngineIndex[]>;
  drop(instance: Instance, name: string, signal: AbortSignal): Promise<{ existed: boolean }>;
}

export interface EngineIndex {
  readonly name: string;
  /** Empty for a closed index. */
  readonly health: string;
  /** Documents without copies. */
  readonly documents: number;
  /** Bytes of all copies. */
  readonly sizeBytes: number;
  readonly shards: number;
  /** Copies of each shard beside the first one. */
  readonly replicas: number;
}
