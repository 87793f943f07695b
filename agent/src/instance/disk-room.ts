import type { Log } from "@holdfast/common/log.ts";
import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { measureUsable, releaseReserve, takeReserve, type UsableSpace } from "../os/disk-reserve.ts";
import type { WriteBlock } from "./write-block.ts";

/** The data disk: how full it is, what is kept from clients for that, and the reserve that an engine recovers with. */
export interface DiskRoom {
  load(): Promise<void>;
  /**
   * Measures the disk and judges it anew. The reserve is held while there is room, and given away once the room is gone
   * to those who need it: an engine that is about to start (`starts`), one that stays up on a full disk and takes deletions (`frees`),
   * and clients who are to delete.
   */
  look(data: string, spec: InstanceSpec, options: LookOptions, signal: AbortSignal): Promise<RoomLook>;
  readonly blocked: WriteBlock["blocked"];
  readonly level: WriteBlock["level"];
}

interface LookOptions {
  readonly starts?: boolean;
  readonly frees?: boolean;
}

interface RoomLook {
  readonly space: UsableSpace;
  /** Something else is kept from clients than before. */
  readonly isOther: boolean;
}

export interface DiskRoomDeps {
  readonly writeBlock: WriteBlock;
  readonly now: () => number;
  readonly log: Log;
}

/** Below it the reserve fits on the disk again. */
const roomyBelow = 95;
/** With less than this for any writer, an engine writes nothing any more, and takes no deletion either. */
const leastWritableBytes = 1 << 20;

export function createDiskRoom({ writeBlock, now, log }: DiskRoomDeps): DiskRoom {
  /** A file system that cannot set space aside is not asked again. */
  let hasRefused = false;

  async function settleReserve(
    data: string,
    { writableBytes, reserve }: UsableSpace,
    isNeeded: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { wantedBytes, heldBytes } = reserve;
    if (isNeeded && heldBytes > 0 && writableBytes < wantedBytes) {
      await releaseReserve(data);
      log.warn("disk reserve released", { bytes: heldBytes, writableBytes });
    } else if (writeBlock.level < roomyBelow && heldBytes < wantedBytes && !hasRefused) {
      await takeReserve(data, wantedBytes, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        hasRefused = true;
        log.warn("disk reserve not taken", { bytes: wantedBytes, reason: (error as Error).message });
      });
    }
  }

  return {
    load: writeBlock.load,
    async look(data, spec, { starts = false, frees = false }, signal) {
      const space = await measureUsable(data, Number(spec.storageBytes), signal);
      const isOther = await writeBlock.look(space, spec, { frees });
      const isStuck = frees && space.writableBytes < leastWritableBytes;
      const isNeeded = starts || isStuck || Number(spec.writesAllowedUntilMs) > now();
      await settleReserve(data, space, isNeeded, signal);
      return { space, isOther };
    },
    get blocked() {
      return writeBlock.blocked;
    },
    get level() {
      return writeBlock.level;
    },
  };
}
