import {
  ensureGuestBoot,
  findGuestBoot,
  type GuestBoot,
  isGuestBoot,
  linuxVersionIn,
  openGuestBoot,
  remakeGuestBoot,
} from "@holdfast/image/guest-boot.ts";
import { readManifest } from "@holdfast/image/image-manifest.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { guestKernelSeries, type ImageFacts } from "../compute-provider.ts";
import type { DirectoryLock } from "./directory-lock.ts";
import type { NodeImages } from "./node-images.ts";

/** Guest kernels (kernel and initramfs) of this host's virtual machines. */
export interface GuestBoots {
  /**
   * The chosen kernel, else the newest; builds it if it is missing, and marks it as used. Throws ComputeFailure if it
   * cannot be built.
   */
  require(chosen: string | undefined, signal: AbortSignal): Promise<GuestBoot>;
  /** The kernel of new virtual machines as an entry in the list of images; empty if none was built yet. */
  facts(): ImageFacts[];
}

export interface GuestBootsDeps {
  readonly imagesDir: string;
  readonly lock: DirectoryLock;
  readonly use: NodeImages["use"];
}

export function createGuestBoots({ imagesDir, lock, use }: GuestBootsDeps): GuestBoots {
  async function make(chosen: string | undefined, signal: AbortSignal): Promise<GuestBoot> {
    if (chosen === undefined) return ensureGuestBoot({ imagesDir, signal });
    const isRegistered =
      openGuestBoot(imagesDir, chosen) !== undefined || readManifest(imagesDir, chosen) !== undefined;
    if (!isGuestBoot(chosen) || !isRegistered)
      throw new ComputeFailure(`The guest kernel ${chosen} is not on this host.`);
    // Marked before the lookup, so that no sweep removes it in between.
    use(chosen);
    return remakeGuestBoot(chosen, { imagesDir, signal });
  }

  return {
    async require(chosen, signal) {
      try {
        const boot = await lock.withLock("guest boot", signal, () => make(chosen, signal));
        use(boot.id);
        return boot;
      } catch (error) {
        if (signal.aborted || error instanceof ComputeFailure) throw error;
        const reason = error instanceof Error ? error.message : String(error);
        throw new ComputeFailure(`The guest kernel could not be built: ${reason}`, { cause: error });
      }
    },
    facts() {
      const boot = findGuestBoot(imagesDir);
      if (boot === undefined) return [];
      const { made } = readManifest(imagesDir, boot.id) ?? {};
      const engineVersion = linuxVersionIn(imagesDir, boot.id);
      return [
        {
          ...guestKernelSeries,
          available: true,
          image: boot.id,
          ...(engineVersion !== undefined && { engineVersion }),
          ...(made && { madeAt: made.at }),
        },
      ];
    },
  };
}
