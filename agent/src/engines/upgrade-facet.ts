import type { Instance } from "./instance.ts";

/**
 * Upgrade of data files whose format differs between versions. The old version's data are retained on the same disk
 * until `discardRetained`, so that `rollBack` can restore them.
 */
export interface UpgradeFacet {
  /**
   * Version of the engine that reads the data; undefined without data. Completes an interrupted exchange of
   * directories.
   */
  versionOf(instance: Instance): Promise<string | undefined>;
  /** Version of the retained data; undefined if an upgrade retained none. */
  retainedVersionOf(instance: Instance): Promise<string | undefined>;
  /** Reasons against an upgrade of the running engine's data. */
  check(instance: Instance, version: string, signal: AbortSignal): Promise<readonly UpgradeObstacle[]>;
  /**
   * Converts the data from version `from` to the instance's version and retains the old ones. The engine must be
   * stopped.
   */
  upgrade(instance: Instance, from: string, signal: AbortSignal): Promise<void>;
  /** Steps that need the running engine, after an upgrade and before clients are admitted. */
  finish(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Restores the retained data and removes the upgraded ones. The engine must be stopped. */
  rollBack(instance: Instance, signal: AbortSignal): Promise<void>;
  /** Removes the retained data. Irreversible from its first step on. */
  discardRetained(instance: Instance, signal: AbortSignal): Promise<void>;
}

export interface UpgradeObstacle {
  /** Code of the engine's own list, which users see: `UpgradeFinding.code` in the proto names each. */
  readonly code: string;
  /** Sentence for users: the obstacle and its remedy. */
  readonly message: string;
}
