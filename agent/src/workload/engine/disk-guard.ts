import type { Log } from "@holdfast/common/log.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { measureUsable, releaseReserve, takeReserve, type UsableSpace } from "../../os/disk-reserve.ts";
import type { WriteBlock } from "./write-block.ts";

/**
 * Watches the data disk. It blocks writes and clients on a nearly full disk, and allocates a reserve of space, which
 * an engine needs to recover on a full disk.
 */
export interface DiskGuard {
  load(): Promise<void>;
  /**
   * Measures the disk and updates the block. The reserve is allocated while there is space. On a full disk it is
   * released for an engine that is about to start (`isStarting`), for one that keeps running and accepts deletions
   * (`acceptsDeletes`), and while users are allowed to write in order to delete.
   */
  check(data: string, spec: InstanceSpec, options: CheckOptions, signal: AbortSignal): Promise<DiskCheck>;
  readonly blocked: WriteBlock["blocked"];
  readonly level: WriteBlock["level"];
}

interface CheckOptions {
  readonly isStarting?: boolean;
  readonly acceptsDeletes?: boolean;
}

interface DiskCheck {
  readonly space: UsableSpace;
  /** True if the block of writes or clients has changed. */
  readonly blockChanged: boolean;
}

export interface DiskGuardDeps {
  readonly writeBlock: WriteBlock;
  readonly now: () => number;
  readonly log: Log;
}

/** Storage level in percent below which the reserve may be allocated. */
const reserveBelowLevel = 95;
/** Free space in bytes below which an engine writes nothing and accepts no deletion. */
const minWritableBytes = 1 << 20;

export function createDiskGuard({ writeBlock, now, log }: DiskGuardDeps): DiskGuard {
  /** True if the file system cannot allocate space, so that the allocation is not tried again. */
  let isUnsupported = false;

  async function settleReserve(
    data: string,
    { writableBytes, reserve }: UsableSpace,
    isNeeded: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { targetBytes, allocatedBytes } = reserve;
    if (isNeeded && allocatedBytes > 0 && writableBytes < targetBytes) {
      await releaseReserve(data);
      log.warn("disk reserve released", { bytes: allocatedBytes, writableBytes });
    } else if (writeBlock.level < reserveBelowLevel && allocatedBytes < targetBytes && !isUnsupported) {
      await takeReserve(data, targetBytes, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        isUnsupported = true;
        log.warn("disk reserve not taken", { bytes: targetBytes, reason: (error as Error).message });
      });
    }
  }

  return {
    load: writeBlock.load,
    async check(data, spec, { isStarting = false, acceptsDeletes = false }, signal) {
      const space = await measureUsable(data, Number(spec.storageBytes), signal);
      const blockChanged = await writeBlock.check(space, spec, { acceptsDeletes });
      const isStuck = acceptsDeletes && space.writableBytes < minWritableBytes;
      const isNeeded = isStarting || isStuck || Number(spec.writesAllowedUntilMs) > now();
      await settleReserve(data, space, isNeeded, signal);
      return { space, blockChanged };
    },
    get blocked() {
      return writeBlock.blocked;
    },
    get level() {
      return writeBlock.level;
    },
  };
}
