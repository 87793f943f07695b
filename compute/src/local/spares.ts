import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "@holdfast/common/log.ts";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import type { MachineSpec } from "../compute-provider.ts";
import { namesIn, readIfThere, temporarySuffix, writeAtomically } from "./atomic-file.ts";
import { diskBytesMin, makeDisk, removeWithDisk } from "./data-disk.ts";
import type { DirectoryLock } from "./directory-lock.ts";
import type { MachineNumbers } from "./machine-number.ts";
import type { Layout, MachinePaths } from "./machine-paths.ts";
import type { NodeImages } from "./node-images.ts";
import { makingPaths, makingsOf } from "./spare-directory.ts";
import type { StorageTiers } from "./storage-tiers.ts";

/** A data disk that an engine has bootstrapped ahead. It comes with its number, so nothing in it changes its owner. */
export interface Spare {
  /** Id of the image whose engine did; absent in descriptions of earlier versions. */
  readonly image?: string;
  readonly number: number;
  readonly uid: number | null;
  readonly disk: "loop" | "directory";
  readonly diskBytes: number;
}

/** An engine version that spares are made of, and what makes one out of an empty /data. */
export interface SpareKind {
  readonly engine: string;
  readonly version: string;
  /** Program and arguments as they are inside a machine; run as the machine's user. */
  readonly command: readonly string[];
}

/** Fills empty data disks. */
export interface Bootstrap {
  /** Without it no spare is ever made. */
  readonly possible: boolean;
  /** What machines of an image need besides a data disk; made first, and when no spare is missing too. */
  prepare(imageRoot: string, signal: AbortSignal): Promise<void>;
  /** Runs the kind's command in the image with the disk at /data, at a priority that is in nobody's way. */
  run(request: BootstrapRequest, signal: AbortSignal): Promise<void>;
  /** Ends what runs of it, whoever began it. */
  end(paths: MachinePaths): Promise<void>;
}

export interface BootstrapRequest {
  readonly kind: SpareKind;
  readonly paths: MachinePaths;
  readonly disk: Spare["disk"];
  readonly uid: number | null;
  readonly imageRoot: string;
}

export interface SparesDeps {
  readonly layout: Layout;
  readonly lock: DirectoryLock;
  readonly numbers: MachineNumbers;
  readonly images: NodeImages;
  readonly kinds: readonly SpareKind[];
  /** How many of each kind are kept. */
  readonly count: number;
  readonly uidOf: (number: number) => number | null;
  readonly disk: Spare["disk"];
  readonly tiers: StorageTiers;
  readonly bootstrap: Bootstrap;
  readonly log: Log;
}

export interface Spares {
  /**
   * Moves a spare that was made by this image into a machine's directory; undefined when there is none that fits. Of many at
   * once each gets another.
   */
  take(spec: MachineSpec, image: string, into: MachinePaths): Promise<Spare | undefined>;
  /** Would this machine get one, were there any? */
  isShort(spec: MachineSpec): Promise<boolean>;
  /** What an interrupted take of such a spare left in a machine's directory. */
  taken(image: string, paths: MachinePaths): Promise<Spare | undefined>;
  /**
   * Makes what is missing, one after the other, and removes what an image has made that is not the newest any more. One
   * process does it at a time; another's call does nothing.
   */
  refill(signal: AbortSignal): Promise<void>;
}

const spareBytes = Math.max(diskBytesMin, 1024 ** 3);
/** A file system that grew further than this has too many allocation groups to be quick. */
const growthMax = 256;

/**
 * What is bootstrapped remembers who did it: system tables of a minor version, versions of the orders of text. So a spare is
 * for machines of the image that made it. Only the newest one makes any, and that one is kept whoever uses it.
 */
export function createSpares(deps: SparesDeps): Spares {
  const { layout, numbers, images, disk, tiers, log } = deps;
  const tierDirectory = tiers.directoryOf(tiers.first);
  const directoryOf = (engine: string, version: string) => join(layout.spares, `${engine}-${version}`);
  const descriptionIn = (directory: string) => join(directory, "spare.json");

  async function make(kind: SpareKind, image: NodeImage, signal: AbortSignal): Promise<void> {
    const imageRoot = image.root;
    const parent = directoryOf(kind.engine, kind.version);
    const number = await numbers.claim(`spare ${kind.engine} ${kind.version}`, parent);
    const paths = makingPaths(parent, number);
    const uid = deps.uidOf(number);
    try {
      for (const directory of [paths.root, paths.state]) await mkdir(directory, { recursive: true, mode: 0o700 });
      await makeDisk(paths, { kind: disk, diskBytes: spareBytes, uid, imageRoot, tierDirectory });
      await deps.bootstrap.run({ kind, paths, disk, uid, imageRoot }, signal);
      const spare: Spare = { image: image.id, number, uid, disk, diskBytes: spareBytes };
      for (const name of ["alive", "keeper.log", "mounts", "passwd", "resolv.conf", "root", "run", "state"]) {
        await rm(join(paths.directory, name), { recursive: true, force: true });
      }
      // It may lie here for long: a power cut must not leave a description of half a disk.
      await syncPath(disk === "loop" ? paths.diskFile : paths.dataDirectory);
      await writeAtomically(descriptionIn(paths.directory), JSON.stringify(spare));
      await rename(paths.directory, join(parent, String(number)));
    } catch (error) {
      await deps.bootstrap.end(paths);
      await removeWithDisk(paths.directory);
      await numbers.release(`spare ${kind.engine} ${kind.version}`, number);
      throw error;
    }
  }

  /** Names of all that are ready, whoever made them. */
  async function readyIn(directory: string): Promise<string[]> {
    const names = await namesIn(directory);
    return names.filter((name) => /^\d+$/.test(name)).sort((a, b) => Number(a) - Number(b));
  }

  async function readyOf(image: string, directory: string): Promise<string[]> {
    const names = await readyIn(directory);
    const made = await Promise.all(names.map((name) => describedIn(join(directory, name))));
    return names.filter((_, index) => made[index]?.image === image);
  }

  /** What other images made, and what a process that was killed in the making left. */
  async function clear(kind: SpareKind, image: string): Promise<void> {
    const parent = directoryOf(kind.engine, kind.version);
    const current = new Set(await readyOf(image, parent));
    for (const name of await readyIn(parent)) {
      if (current.has(name)) continue;
      // A machine that takes the spare at this moment was first, or finds nothing.
      await rename(join(parent, name), makingPaths(parent, Number(name)).directory).catch(unlessTaken);
    }
    for (const name of await namesIn(parent)) if (name.endsWith(temporarySuffix)) await rm(join(parent, name));
    for (const paths of await makingsOf(parent)) {
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
    const spares = await Promise.all(machines.map((id) => describedIn(layout.machine(id).spare)));
    return spares.some((spare) => spare?.number === number);
  }

  async function describedIn(directory: string): Promise<Spare | undefined> {
    const text = await readIfThere(descriptionIn(directory));
    return text === undefined ? undefined : (JSON.parse(text) as Spare);
  }

  return {
    async isShort({ engine, version, storageTier, image: chosen }) {
      if (tiers.directoryOf(storageTier) !== tierDirectory) return false;
      const isKept = deps.kinds.some((kind) => kind.engine === engine && kind.version === version);
      if (!isKept || deps.count === 0 || !deps.bootstrap.possible) return false;
      const newest = images.find(engine, version)?.id;
      if (newest === undefined || newest !== (chosen ?? newest)) return false;
      return (await readyOf(newest, directoryOf(engine, version))).length === 0;
    },
    async taken(image, paths) {
      const spare = await describedIn(paths.spare);
      return spare?.image === image ? spare : undefined;
    },
    async take({ engine, version, diskBytes, storageTier }, image, into) {
      if (tiers.directoryOf(storageTier) !== tierDirectory) return undefined;
      if (diskBytes < spareBytes || diskBytes > spareBytes * growthMax) return undefined;
      const parent = directoryOf(engine, version);
      for (const name of await readyOf(image, parent)) {
        try {
          await rename(join(parent, name), into.spare);
          return await describedIn(into.spare);
        } catch (error) {
          unlessTaken(error);
        }
      }
      return undefined;
    },
    async refill(signal) {
      if (!deps.bootstrap.possible) return;
      await deps.lock.tryHold("spares", async () => {
        for (const kind of deps.kinds) {
          const parent = directoryOf(kind.engine, kind.version);
          const image = images.find(kind.engine, kind.version);
          if (image === undefined) continue;
          await deps.bootstrap.prepare(image.root, signal);
          await mkdir(parent, { recursive: true, mode: 0o700 });
          await clear(kind, image.id);
          while (!signal.aborted && (await readyOf(image.id, parent)).length < deps.count) {
            await make(kind, image, signal);
            log.debug("spare made", { engine: kind.engine, version: kind.version });
          }
        }
      });
    },
  };
}

/** Another machine took the spare first. */
function unlessTaken(error: unknown): void {
  if (!hasCode(error, "ENOENT")) throw error;
}
