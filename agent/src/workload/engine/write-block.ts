import { join } from "node:path";
import { readIfExists, writeDurably } from "@holdfast/common/durable-file.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { roleOf } from "../../engines/members.ts";
import type { DiskSpace } from "../../os/disk-space.ts";

/** The restrictions on clients while the disk is nearly full. */
export interface Blocked {
  readonly writes: boolean;
  /** True if no client is admitted. */
  readonly clients: boolean;
}

/**
 * Blocks writes before the disk is so full that the engine ends, with or without a controller. The block is stored on
 * disk for the next agent.
 */
export interface WriteBlock {
  load(): Promise<void>;
  /**
   * Updates the block; returns true if it changed. With `acceptsDeletes` the engine accepts deletions while writes are
   * blocked, so clients remain admitted.
   */
  check(space: DiskSpace, spec: InstanceSpec, options?: { readonly acceptsDeletes?: boolean }): Promise<boolean>;
  readonly blocked: Blocked;
  readonly level: StorageLevel;
}

const blockedAt = 95;
const closedAt = 99;

export function createWriteBlock({ stateDir, now }: { stateDir: string; now: () => number }): WriteBlock {
  const file = join(stateDir, "instance", "storage-level.json");
  let level: StorageLevel = 0;
  let blocked: Blocked = { writes: false, clients: false };

  return {
    async load() {
      const bytes = await readIfExists(file);
      if (bytes !== undefined)
        ({ level, blocked } = JSON.parse(bytes.toString("utf8")) as Pick<WriteBlock, "level" | "blocked">);
    },
    async check(space, spec, { acceptsDeletes = false } = {}) {
      const next = storageLevelOf(space, level);
      const isAllowed = Number(spec.writesAllowedUntilMs) > now();
      // A replica accepts no writes of clients, so its readers are not interrupted.
      const writes = !isAllowed && next >= blockedAt && roleOf(spec) !== "replica";
      const clients = !isAllowed && next >= closedAt && !acceptsDeletes;
      const hasChanged = writes !== blocked.writes || clients !== blocked.clients;
      if (!hasChanged && next === level) return false;
      [level, blocked] = [next, { writes, clients }];
      // Stored outside of the data disk, which is full.
      await writeDurably(file, JSON.stringify({ level, blocked }));
      return hasChanged;
    },
    get blocked() {
      return blocked;
    },
    get level() {
      return level;
    },
  };
}

/** Levels of disk use in percent. Users are warned at each; writes are blocked from 95 and clients from 99 on. */
export const storageLevels = [0, 80, 85, 90, 95, 99] as const;
export type StorageLevel = (typeof storageLevels)[number];

/** Hysteresis in percent, so that a disk near a level does not change it again and again. */
const slackPct = 2;

/** The disk's level, given its previous one. */
export function storageLevelOf(
  { usedBytes, totalBytes }: Pick<DiskSpace, "usedBytes" | "totalBytes">,
  before: StorageLevel,
): StorageLevel {
  const usedPct = totalBytes === 0 ? 0 : (usedBytes / totalBytes) * 100;
  const reached = (level: StorageLevel) => usedPct >= level - (level <= before ? slackPct : 0);
  return storageLevels.findLast((level) => level === 0 || reached(level)) ?? 0;
}
