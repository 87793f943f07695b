import type { Log } from "@holdfast/common/log.ts";
import { openImageUses } from "@holdfast/image/image-uses.ts";
import type { Additions } from "@holdfast/image/additions.ts";
import { sweepImages } from "@holdfast/image/sweep-images.ts";
import { namesIn } from "./atomic-file.ts";
import type { Layout } from "./machine-paths.ts";
import { type MachineRecord, readRecord } from "./machine-record.ts";
import { choiceOf } from "./node-images.ts";

/** Removes the uses of images that machines no longer need (image-uses.ts), and images without any use. */
export interface ImageSweep {
  /** Sweeps once. A sweep also runs every hour. */
  sweep(): Promise<void>;
  close(): void;
}

export interface ImageSweepDeps {
  readonly layout: Layout;
  readonly imagesDir: string;
  /** Plugins that the operator adds to images. */
  readonly additions?: Additions;
  readonly now: () => number;
  readonly log: Log;
  /**
   * Ids of images and kernels that instances boot from, which may differ from their records. If it throws, the sweep
   * removes nothing.
   */
  readonly alsoNeeded?: () => Promise<readonly string[]>;
  /** Removes copies of images that the provider made, such as imports, except copies of `needed` images. */
  readonly removeOthers?: (needed: ReadonlySet<string>) => Promise<void>;
}

const hourMs = 3_600_000;
/** Period in which an update can be rolled back. */
const rollbackMs = 14 * 86_400_000;

export function createImageSweep(deps: ImageSweepDeps): ImageSweep {
  const { layout, imagesDir, additions, now, log, alsoNeeded, removeOthers } = deps;
  const uses = openImageUses(imagesDir, layout.directory);
  let running: Promise<void> | undefined;

  async function sweepOnce(): Promise<void> {
    const ids = await namesIn(layout.machines);
    const records = await Promise.all(ids.map((id) => readRecord(layout.machine(id).record)));
    const needed = new Set(records.flatMap((record) => (record === undefined ? [] : imagesOf(record, now()))));
    await uses.keepOnly(needed.union(new Set(await alsoNeeded?.())), now());
    const { trees, manifests } = await sweepImages({ imagesDir, now: now(), ...(additions && { additions }) });
    if (trees.length + manifests.length > 0) log.info("unused images removed", { trees, manifests });
    await removeOthers?.(needed);
  }

  const sweep = () => {
    running ??= sweepOnce().finally(() => {
      running = undefined;
    });
    return running;
  };
  const timer = setInterval(() => {
    sweep().catch((error: unknown) => log.warn("unused images not removed", { error: String(error) }));
  }, hourMs);
  timer.unref();
  return { sweep, close: () => clearInterval(timer) };
}

/** Ids of the images and kernels that a machine needs: the current ones, and for 14 days the previous ones. */
function imagesOf(record: MachineRecord, now: number): string[] {
  const { image = "", previousImage, guestKernel = "", previousGuestKernel } = record;
  const before = [previousImage, previousGuestKernel].filter((each) => each !== undefined);
  const retained = before.filter(({ replacedAt }) => now - replacedAt < rollbackMs).map(({ id }) => id);
  return [image, guestKernel, ...retained].filter((id) => id !== "");
}

/** The record with another image from the next start on. Applying it twice changes nothing. */
export function withImage(record: MachineRecord, image: string, now: number): MachineRecord {
  const { image: before = "", spec } = record;
  if (before === image) return record;
  const { version } = choiceOf(spec, image);
  return {
    ...record,
    spec: { ...spec, version },
    image,
    ...(before !== "" && { previousImage: { id: before, replacedAt: now } }),
  };
}

/**
 * The record of a virtual machine with another kernel from the next start on, as `withImage`. `booted` is the
 * current kernel.
 */
export function withGuestKernel(
  record: MachineRecord,
  guestKernel: string,
  booted: string,
  now: number,
): MachineRecord {
  const { guestKernel: before = booted } = record;
  if (before === guestKernel) return { ...record, guestKernel };
  return { ...record, guestKernel, ...(before !== "" && { previousGuestKernel: { id: before, replacedAt: now } }) };
}
