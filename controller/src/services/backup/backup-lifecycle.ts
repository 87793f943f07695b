import { defineMachine, type EffectOf, type EventOf, type StateOf } from "@holdfast/common/machine.ts";

/**
 * States of a backup. A failed attempt, for example after a restart or failover, is repeated up to three times. The
 * reason of a failure is in `status.error`; a canceled backup is `failed` too.
 */
// biome-ignore format: a table, aligned so that it reads as one
export const backupLifecycle = defineMachine("backup", [
  // from        event           to           effect
  ["pending",   "begun",        "running",   "none"],
  ["pending",   "failed",       "failed",    "announceFailed"],
  ["running",   "sourceLost",   "pending",   "none"],
  ["running",   "stored",       "verifying", "none"],
  ["running",   "failed",       "failed",    "announceFailed"],
  ["verifying", "verified",     "completed", "announceCompleted"],
  ["verifying", "failed",       "failed",    "announceFailed"],
]);

export type BackupState = StateOf<typeof backupLifecycle>;
export type BackupEvent = EventOf<typeof backupLifecycle>;
export type BackupEffect = EffectOf<typeof backupLifecycle>;
