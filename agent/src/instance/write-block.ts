import { join } from "node:path";
import { readIfThere, writeDurably } from "@holdfast/common/durable-file.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { roleOf } from "../engines/members.ts";
import type { DiskSpace } from "../os/disk-space.ts";
import { type StorageLevel, storageLevelOf } from "./storage-level.ts";

/** What is kept from clients while a disk is nearly full. */
export interface Blocked {
  readonly writes: boolean;
  /** Nobody is admitted at all. */
  readonly clients: boolean;
}

/**
 * Stops writes before a disk is so full that the engine ends, with or without a controller; an agent that comes after
 * knows of it.
 */
export interface WriteBlock {
  load(): Promise<void>;
  /**
   * Judges the disk anew; true when something else is kept from clients than before. `frees`: of an engine that takes deletions while its
   * writes are blocked, so that clients stay.
   */
  look(space: DiskSpace, spec: InstanceSpec, options?: { readonly frees?: boolean }): Promise<boolean>;
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
      const bytes = await readIfThere(file);
      if (bytes !== undefined)
        ({ level, blocked } = JSON.parse(bytes.toString("utf8")) as Pick<WriteBlock, "level" | "blocked">);
    },
    async look(space, spec, { frees = false } = {}) {
      const next = storageLevelOf(space, level);
      const isAllowed = Number(spec.writesAllowedUntilMs) > now();
      // A replica takes no writes but its primary's, and ends for nothing those who only read.
      const writes = !isAllowed && next >= blockedAt && roleOf(spec) !== "replica";
      const clients = !isAllowed && next >= closedAt && !frees;
      const isOther = writes !== blocked.writes || clients !== blocked.clients;
      if (!isOther && next === level) return false;
      [level, blocked] = [next, { writes, clients }];
      // Beside the data disk, which has no room for it.
      await writeDurably(file, JSON.stringify({ level, blocked }));
      return isOther;
    },
    get blocked() {
      return blocked;
    },
    get level() {
      return level;
    },
  };
}
