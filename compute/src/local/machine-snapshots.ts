import { ComputeFailure } from "../compute-failure.ts";
import type { MachineSnapshots } from "../compute-provider.ts";
import type { DirectoryLock } from "./directory-lock.ts";
import {
  cloneRefusal,
  heldBytes,
  removeSnapshot,
  restoreSnapshot,
  snapshotBytesIn,
  snapshotSize,
  snapshotsOf,
  takeSnapshot,
} from "./disk-snapshots.ts";
import { admitSnapshot, spaceOf } from "./free-space.ts";
import { namesIn } from "./atomic-file.ts";
import type { Layout, MachinePaths } from "./machine-paths.ts";
import { type MachineRecord, writeRecord } from "./machine-record.ts";
import { disksIn, placeOf, type StorageTiers } from "./storage-tiers.ts";

export interface MachineSnapshotsDeps {
  readonly layout: Layout;
  readonly lock: DirectoryLock;
  readonly tiers: StorageTiers;
  /** Throws ComputeFailure when there is no such machine. */
  readonly recordOf: (machineId: string) => Promise<MachineRecord>;
  /** Does the work while nothing has the machine's disk open; throws ComputeFailure when the machine runs. */
  readonly atRest: (
    machineId: string,
    paths: MachinePaths,
    signal: AbortSignal,
    work: () => Promise<void>,
  ) => Promise<void>;
}

/**
 * Snapshots of data disks that are files. The machine is stopped: a file system that is frozen instead would stay so when
 * whoever froze it is killed, and an engine that was shut down in order leaves data that need no recovery.
 */
export function createMachineSnapshots(deps: MachineSnapshotsDeps): MachineSnapshots {
  const { layout, lock, tiers, atRest } = deps;

  /** Holds the machine as it is. Whoever knows less starts of it than there were gave the order before the last one. */
  async function hold(id: string, name: string, starts: number, signal: AbortSignal, work: Work): Promise<void> {
    if (!/^[A-Za-z0-9-]{1,64}$/.test(name)) throw new Error(`${name} cannot be the name of a snapshot`);
    await lock.hold(id, signal, async () => {
      const record = await deps.recordOf(id);
      if (record.disk !== "loop") throw new ComputeFailure(withoutDisks);
      if (record.starts !== starts)
        throw new ComputeFailure(`Machine ${id} was started since its snapshot was decided on.`);
      await work(record, layout.machine(id));
    });
  }

  async function requireRoom({ spec }: MachineRecord, { diskFile }: MachinePaths): Promise<void> {
    const tierDirectory = tiers.directoryOf(spec.storageTier);
    const space = await spaceOf(tierDirectory ?? layout.machines, await promisedToSnapshots(layout, tierDirectory));
    const admission = admitSnapshot(await heldBytes(await placeOf(diskFile)), space);
    if (!admission.admitted) throw new ComputeFailure(admission.reason);
  }

  return {
    take: (id, name, starts, signal) =>
      hold(id, name, starts, signal, async (record, paths) => {
        if ((await snapshotsOf(paths.diskFile)).includes(name)) return;
        await requireRoom(record, paths);
        await atRest(id, paths, signal, () => takeSnapshot(paths.diskFile, name));
      }),
    restore: (id, name, starts, signal) =>
      hold(id, name, starts, signal, async (record, paths) => {
        const sizeBytes = await snapshotSize(paths.diskFile, name);
        if (sizeBytes === undefined) throw new ComputeFailure(`Machine ${id} has no snapshot ${name}.`);
        // The disk may have grown since. Noted first: a file system that fills its disk is grown once more without harm.
        if (sizeBytes < record.formattedBytes)
          await writeRecord(paths.record, { ...record, formattedBytes: sizeBytes });
        await atRest(id, paths, signal, () => restoreSnapshot(paths.diskFile, name));
      }),
    remove: (id, name, signal) => lock.hold(id, signal, async () => removeSnapshot(layout.machine(id).diskFile, name)),
  };
}

type Work = (record: MachineRecord, paths: MachinePaths) => Promise<void>;

const withoutDisks = "Data disks are directories on this host, of which there are no snapshots.";

/** Space of a tier that its snapshots may still come to take, bytes; without a directory of its own that of all machines. */
export async function promisedToSnapshots(layout: Layout, tierDirectory: string | undefined): Promise<number> {
  if (tierDirectory !== undefined) return snapshotBytesIn(disksIn(tierDirectory));
  const ids = await namesIn(layout.machines);
  const bytes = await Promise.all(ids.map((id) => snapshotBytesIn(layout.machine(id).directory)));
  return bytes.reduce((sum, one) => sum + one, 0);
}

/** Tells of each tier why its disks can have no snapshots; empty when they can. It is tried once. */
export function createSnapshotTrial(directory: string, tiers: StorageTiers, hasLoopDevices: boolean) {
  const tried = new Map<string, Promise<string>>();
  return (tier: string): Promise<string> => {
    if (!hasLoopDevices) return Promise.resolve(withoutDisks);
    const place = tiers.directoryOf(tier) ?? directory;
    const trial = tried.get(place) ?? cloneRefusal(place).then((reason) => reason ?? "");
    tried.set(place, trial);
    return trial;
  };
}
