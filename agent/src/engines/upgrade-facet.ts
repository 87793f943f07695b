import type { Instance } from "./instance.ts";

/** For an engine whose data files differ between versions. Upgraded data leave those of before beside them. */
export interface UpgradeFacet {
  /** Version of the engine that reads the data; undefined without data. Finishes an exchange that was interrupted. */
  versionOf(instance: Instance): Promise<string | undefined>;
  /** Version of the data that an upgrade left beside; undefined where it left none. */
  keptVersionOf(instance: Instance): Promise<string | undefined>;
  /** What stands against an upgrade of the running engine's data. */
  check(instance: Instance, version: string, signal: AbortSignal): Promise<readonly UpgradeObstacle[]>;
  /** Makes data of the instance's version out of those of version `from`, and keeps these. No engine may run. */
  upgrade(instance: Instance, from: string, signal: AbortSignal): Promise<void>;
  /** Once the engine runs over upgraded data, and before clients are admitted: what only a running engine can do. */
  finish(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Puts the data back that were kept, and removes what was made of them. No engine may run. */
  goBack(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Removes the data that were kept. From its first step on there is no way back. */
  forget(instance: Instance, signal: AbortSignal): Promise<void>;
}

export interface UpgradeObstacle {
  readonly code: UpgradeObstacleCode;
  /** For users: what is there, and what to do. */
  readonly message: string;
}

export type UpgradeObstacleCode =
  | "no_room"
  | "prepared_transactions"
  | "replication_slots"
  | "closed_databases"
  | "invalid_databases"
  | "column_types"
  | "not_null_constraints"
  | "extensions"
  | "statistics_views";
