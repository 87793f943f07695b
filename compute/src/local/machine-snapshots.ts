import { ComputeFailure } from "../compute-failure.ts";
import type { MachineSnapshots } from "../compute-provider.ts";
import type { DirectoryLock } from "./directory-lock.ts";
import {
  cloneRefusal,
  allocatedBytes,
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
import { disksIn, locationOf, type StorageTiers } from "./storage-tiers.ts";

export interface MachineSnapshotsDeps {
  readonly layout: Layout;
  readonly lock: DirectoryLock;
  readonly tiers: StorageTiers;
  /** Throws ComputeFailure if there is no such machine. */
  readonly recordOf: (machineId: string) => Promise<MachineRecord>;
  /** Runs the work while no process has the machine's disk open; throws ComputeFailure if the machine runs. */
  readonly whileStopped: (
    machineId: string,
    paths: MachinePaths,
    signal: AbortSignal,
    work: () => Promise<void>,
  ) => Promise<void>;
}

/**
 * Snapshots of data disks that are files. The machine must be stopped: a frozen file system would stay frozen if the
 * freezing process were killed, and an engine after an orderly shutdown leaves data that need no recovery.
 */
export function createMachineSnapshots(deps: MachineSnapshotsDeps): MachineSnapshots {
  const { layout, lock, tiers, whileStopped } = deps;

  /** Locks the machine. A caller with an older start counter made its request before the latest start. */
  async function underLock(id: string, name: string, starts: number, signal: AbortSignal, work: Work): Promise<void> {
    if (!/^[A-Za-z0-9-]{1,64}$/.test(name)) throw new Error(`${name} cannot be the name of a snapshot`);
    await lock.withLock(id, signal, async () => {
      const record = await deps.recordOf(id);
      if (record.disk !== "loop") throw new ComputeFailure(withoutDisks);
      if (record.starts !== starts)
        throw new ComputeFailure(`Machine ${id} was started since its snapshot was requested.`);
      await work(record, layout.machine(id));
    });
  }

  async function requireSpace({ spec }: MachineRecord, { diskFile }: MachinePaths): Promise<void> {
    const tierDirectory = tiers.directoryOf(spec.storageTier);
    const space = await spaceOf(tierDirectory ?? layout.machines, await pendingSnapshotBytes(layout, tierDirectory));
    const admission = admitSnapshot(await allocatedBytes(await locationOf(diskFile)), space);
    if (!admission.admitted) throw new ComputeFailure(admission.reason);
  }

  return {
    take: (id, name, starts, signal) =>
      underLock(id, name, starts, signal, async (record, paths) => {
        if ((await snapshotsOf(paths.diskFile)).includes(name)) return;
        await requireSpace(record, paths);
        await whileStopped(id, paths, signal, () => takeSnapshot(paths.diskFile, name));
      }),
    restore: (id, name, starts, signal) =>
      underLock(id, name, starts, signal, async (record, paths) => {
        const sizeBytes = await snapshotSize(paths.diskFile, name);
        if (sizeBytes === undefined) throw new ComputeFailure(`Machine ${id} has no snapshot ${name}.`);
        // The disk may have grown since. Recorded first: growing a file system that fills its disk is harmless.
        if (sizeBytes < record.formattedBytes)
          await writeRecord(paths.record, { ...record, formattedBytes: sizeBytes });
        await whileStopped(id, paths, signal, () => restoreSnapshot(paths.diskFile, name));
      }),
    remove: (id, name, signal) =>
      lock.withLock(id, signal, async () => removeSnapshot(layout.machine(id).diskFile, name)),
  };
}

type Work = (record: MachineRecord, paths: MachinePaths) => Promise<void>;

const withoutDisks = "Data disks are directories on this host, so there are no snapshots.";

/** Space that the snapshots of a tier may still take, bytes; of all machines if the tier has no directory. */
export async function pendingSnapshotBytes(layout: Layout, tierDirectory: string | undefined): Promise<number> {
  if (tierDirectory !== undefined) return snapshotBytesIn(disksIn(tierDirectory));
  const ids = await namesIn(layout.machines);
  const bytes = await Promise.all(ids.map((id) => snapshotBytesIn(layout.machine(id).directory)));
  return bytes.reduce((sum, each) => sum + each, 0);
}

/** Returns the reason why disks of a tier cannot have snapshots; empty if they can. Tests each directory once. */
export function createSnapshotProbe(directory: string, tiers: StorageTiers, hasLoopDevices: boolean) {
  const probes = new Map<string, Promise<string>>();
  return (tier: string): Promise<string> => {
    if (!hasLoopDevices) return Promise.resolve(withoutDisks);
    const directoryOfTier = tiers.directoryOf(tier) ?? directory;
    const probe = probes.get(directoryOfTier) ?? cloneRefusal(directoryOfTier).then((reason) => reason ?? "");
    probes.set(directoryOfTier, probe);
    return probe;
  };
}
