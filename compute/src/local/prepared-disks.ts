import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import { engineCatalog } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { MachineSpec } from "../compute-provider.ts";
import { namesIn, readIfExists, temporarySuffix, writeAtomically } from "./atomic-file.ts";
import { minDiskBytes, createDisk, removeWithDisk } from "./data-disk.ts";
import type { DirectoryLock } from "./directory-lock.ts";
import type { MachineNumbers } from "./machine-number.ts";
import {
  type Layout,
  machineDataDirectory,
  type MachinePaths,
  unfinishedOf,
  unfinishedPaths,
} from "./machine-paths.ts";
import type { RuntimePaths } from "./machine-runtime.ts";
import type { NodeImages } from "./node-images.ts";
import type { StorageTiers } from "./storage-tiers.ts";

/**
 * A data disk that an engine bootstrapped in advance. The machine that takes it gets the disk's machine number, so its
 * files never change their owner.
 */
export interface PreparedDisk {
  /** Id of the image that bootstrapped the disk; absent in descriptions of earlier releases. */
  readonly image?: string;
  readonly number: number;
  readonly uid: number | null;
  readonly disk: "loop" | "directory";
  readonly diskBytes: number;
}

/** An engine version that disks are prepared for, with the command that bootstraps an empty /data. */
export interface PreparedDiskKind {
  readonly engine: string;
  readonly version: string;
  /** Program and arguments with paths inside a machine; runs as the machine's user. */
  readonly command: readonly string[];
}

/** Bootstraps empty data disks. */
export interface Bootstrap {
  /** False if disks cannot be prepared on this host. */
  readonly possible: boolean;
  /** Builds the other parts that machines of an image need; runs first, also when no disk is missing. */
  prepare(imageRoot: string, signal: AbortSignal): Promise<void>;
  /** Runs the kind's command in the image with the disk at /data, at idle priority. */
  run(request: BootstrapRequest, signal: AbortSignal): Promise<void>;
  /** Ends all processes of a bootstrap, of any controller. */
  end(paths: MachinePaths): Promise<void>;
}

export interface BootstrapRequest {
  readonly kind: PreparedDiskKind;
  readonly paths: MachinePaths;
  readonly disk: PreparedDisk["disk"];
  readonly uid: number | null;
  readonly imageRoot: string;
}

export interface PreparedDisksDeps {
  readonly layout: Layout;
  readonly lock: DirectoryLock;
  readonly numbers: MachineNumbers;
  readonly images: NodeImages;
  readonly kinds: readonly PreparedDiskKind[];
  /** Number of prepared disks of each kind. */
  readonly count: number;
  readonly uidOf: (number: number) => number | null;
  readonly disk: PreparedDisk["disk"];
  readonly tiers: StorageTiers;
  readonly bootstrap: Bootstrap;
  readonly log: Log;
}

export interface PreparedDisks {
  /**
   * Moves a disk that this image prepared into a machine's directory; undefined if none fits. Concurrent calls take
   * different disks.
   */
  take(spec: MachineSpec, image: string, into: MachinePaths): Promise<PreparedDisk | undefined>;
  /** True if a disk could be prepared for this machine and none is ready. */
  hasNoneReady(spec: MachineSpec): Promise<boolean>;
  /** The disk that an interrupted `take` left in a machine's directory. */
  findTaken(image: string, paths: MachinePaths): Promise<PreparedDisk | undefined>;
  /**
   * Prepares the missing disks, one after the other, and removes disks of images that are not the newest. One process
   * at a time; a concurrent call does nothing.
   */
  refill(signal: AbortSignal): Promise<void>;
}

const preparedDiskBytes = Math.max(minDiskBytes, 1024 ** 3);
/** Maximum growth of a prepared disk's file system: beyond it, too many allocation groups make it slow. */
const maxGrowthFactor = 256;

/**
 * A bootstrapped disk depends on its image: on the minor version's system tables and on collation versions. So each
 * disk is for machines of the image that prepared it, and only the newest image prepares any.
 */
export function createPreparedDisks(deps: PreparedDisksDeps): PreparedDisks {
  const { layout, numbers, images, disk, tiers, log } = deps;
  const tierDirectory = tiers.directoryOf(tiers.first);
  const directoryOf = (engine: string, version: string) => join(layout.preparedDisks, `${engine}-${version}`);
  const descriptionIn = (directory: string) => join(directory, "spare.json");

  async function make(kind: PreparedDiskKind, image: NodeImage, signal: AbortSignal): Promise<void> {
    const imageRoot = image.root;
    const parent = directoryOf(kind.engine, kind.version);
    const number = await numbers.claim(`spare ${kind.engine} ${kind.version}`, parent);
    const paths = unfinishedPaths(parent, number);
    const uid = deps.uidOf(number);
    try {
      for (const directory of [paths.root, paths.state]) await mkdir(directory, { recursive: true, mode: 0o700 });
      await createDisk(paths, { kind: disk, diskBytes: preparedDiskBytes, uid, imageRoot, tierDirectory });
      await deps.bootstrap.run({ kind, paths, disk, uid, imageRoot }, signal);
      const prepared: PreparedDisk = { image: image.id, number, uid, disk, diskBytes: preparedDiskBytes };
      for (const name of ["alive", "keeper.log", "mounts", "passwd", "resolv.conf", "root", "run", "state"]) {
        await rm(join(paths.directory, name), { recursive: true, force: true });
      }
      // The disk is synced before its description is written, so that after a power cut a described disk is complete.
      await syncPath(disk === "loop" ? paths.diskFile : paths.dataDirectory);
      await writeAtomically(descriptionIn(paths.directory), JSON.stringify(prepared));
      await rename(paths.directory, join(parent, String(number)));
    } catch (error) {
      await deps.bootstrap.end(paths);
      await removeWithDisk(paths.directory);
      await numbers.release(`spare ${kind.engine} ${kind.version}`, number);
      throw error;
    }
  }

  /** Names of all ready disks. */
  async function readyIn(directory: string): Promise<string[]> {
    const names = await namesIn(directory);
    return names.filter((name) => /^\d+$/.test(name)).sort((a, b) => Number(a) - Number(b));
  }

  async function readyOf(image: string, directory: string): Promise<string[]> {
    const names = await readyIn(directory);
    const descriptions = await Promise.all(names.map((name) => describedIn(join(directory, name))));
    return names.filter((_, index) => descriptions[index]?.image === image);
  }

  /** Removes disks of other images, and the unfinished ones of killed processes. */
  async function clear(kind: PreparedDiskKind, image: string): Promise<void> {
    const parent = directoryOf(kind.engine, kind.version);
    const current = new Set(await readyOf(image, parent));
    for (const name of await readyIn(parent)) {
      if (current.has(name)) continue;
      // A machine that takes the disk concurrently renames it first, or finds none.
      await rename(join(parent, name), unfinishedPaths(parent, Number(name)).directory).catch(unlessTaken);
    }
    for (const name of await namesIn(parent)) if (name.endsWith(temporarySuffix)) await rm(join(parent, name));
    for (const paths of await unfinishedOf(parent)) {
      await deps.bootstrap.end(paths);
      await removeWithDisk(paths.directory);
    }
    const owner = `spare ${kind.engine} ${kind.version}`;
    const ready = new Set((await readyIn(parent)).map(Number));
    for (const number of await numbers.of(owner)) {
      if (ready.has(number) || (await isTaken(number))) continue;
      await numbers.release(owner, number);
    }
  }

  async function isTaken(number: number): Promise<boolean> {
    const machines = await namesIn(layout.machines);
    const takenDisks = await Promise.all(machines.map((id) => describedIn(layout.machine(id).preparedDisk)));
    return takenDisks.some((prepared) => prepared?.number === number);
  }

  async function describedIn(directory: string): Promise<PreparedDisk | undefined> {
    const text = await readIfExists(descriptionIn(directory));
    return text === undefined ? undefined : (JSON.parse(text) as PreparedDisk);
  }

  return {
    async hasNoneReady({ engine, version, storageTier, image: chosen }) {
      if (tiers.directoryOf(storageTier) !== tierDirectory) return false;
      const isPrepared = deps.kinds.some((kind) => kind.engine === engine && kind.version === version);
      if (!isPrepared || deps.count === 0 || !deps.bootstrap.possible) return false;
      const newest = images.find(engine, version)?.id;
      if (newest === undefined || newest !== (chosen ?? newest)) return false;
      return (await readyOf(newest, directoryOf(engine, version))).length === 0;
    },
    async findTaken(image, paths) {
      const prepared = await describedIn(paths.preparedDisk);
      return prepared?.image === image ? prepared : undefined;
    },
    async take({ engine, version, diskBytes, storageTier }, image, into) {
      if (tiers.directoryOf(storageTier) !== tierDirectory) return undefined;
      if (diskBytes < preparedDiskBytes || diskBytes > preparedDiskBytes * maxGrowthFactor) return undefined;
      const parent = directoryOf(engine, version);
      for (const name of await readyOf(image, parent)) {
        try {
          await rename(join(parent, name), into.preparedDisk);
          return await describedIn(into.preparedDisk);
        } catch (error) {
          unlessTaken(error);
        }
      }
      return undefined;
    },
    async refill(signal) {
      if (!deps.bootstrap.possible) return;
      await deps.lock.tryWithLock("spares", async () => {
        for (const kind of deps.kinds) {
          const parent = directoryOf(kind.engine, kind.version);
          const image = images.find(kind.engine, kind.version);
          if (image === undefined) continue;
          await deps.bootstrap.prepare(image.root, signal);
          await mkdir(parent, { recursive: true, mode: 0o700 });
          await clear(kind, image.id);
          while (!signal.aborted && (await readyOf(image.id, parent)).length < deps.count) {
            await make(kind, image, signal);
            log.debug("data disk prepared", { engine: kind.engine, version: kind.version });
          }
        }
      });
    },
  };
}

/** Ignores the error if another machine took the disk first. */
function unlessTaken(error: unknown): void {
  if (!hasCode(error, "ENOENT")) throw error;
}

/** Engines that disks are prepared for. `data` is the directory of the disk that machines mount as /data. */
export function preparedEngines({ node, checkout }: RuntimePaths, data = machineDataDirectory): PreparedDiskKind[] {
  const prepare = join(checkout, "agent", "src", "engines", "prepare.ts");
  return engineCatalog
    .filter(({ hasPreparedDisks }) => hasPreparedDisks)
    .map(({ engine, defaultVersion: version }) => {
      return { engine, version, command: [node, prepare, engine, version, data] };
    });
}
