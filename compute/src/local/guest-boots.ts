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
import { guestLine, type ImageFacts } from "../compute-provider.ts";
import type { DirectoryLock } from "./directory-lock.ts";
import type { NodeImages } from "./node-images.ts";

/** Kernels that virtual machines of this host boot from. */
export interface GuestBoots {
  /**
   * The one that was chosen, else the newest; made first where it is missing, and needed from then on. Throws ComputeFailure
   * when it cannot be made.
   */
  require(chosen: string | undefined, signal: AbortSignal): Promise<GuestBoot>;
  /** The one that new virtual machines boot from, as one of the host's images; none where none was made yet. */
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
    const isKnown = openGuestBoot(imagesDir, chosen) !== undefined || readManifest(imagesDir, chosen) !== undefined;
    if (!isGuestBoot(chosen) || !isKnown)
      throw new ComputeFailure(`The kernel ${chosen} of virtual machines is not on this host.`);
    // Before it is looked for: no sweep takes it in between.
    use(chosen);
    return remakeGuestBoot(chosen, { imagesDir, signal });
  }

  return {
    async require(chosen, signal) {
      try {
        const boot = await lock.hold("guest boot", signal, () => make(chosen, signal));
        use(boot.id);
        return boot;
      } catch (error) {
        if (signal.aborted || error instanceof ComputeFailure) throw error;
        const reason = error instanceof Error ? error.message : String(error);
        throw new ComputeFailure(`What virtual machines boot from could not be made: ${reason}`, { cause: error });
      }
    },
    facts() {
      const boot = findGuestBoot(imagesDir);
      if (boot === undefined) return [];
      const { made } = readManifest(imagesDir, boot.id) ?? {};
      const engineVersion = linuxVersionIn(imagesDir, boot.id);
      return [
        {
          ...guestLine,
          available: true,
          image: boot.id,
          ...(engineVersion !== undefined && { engineVersion }),
          ...(made && { madeAt: made.at }),
        },
      ];
    },
  };
}
