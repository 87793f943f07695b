import type { NodeImage } from "@holdfast/image/node-image.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { DirectoryLock } from "../local/directory-lock.ts";
import type { ImageChoice, NodeImages } from "../local/node-images.ts";
import type { MachineCode } from "../process/machine-code.ts";
import type { IncusImages } from "./incus-images.ts";
import { inside } from "./instance-config.ts";

/** What instances are made from. */
export interface IncusMaterials {
  /** The image for a machine. Throws ComputePending while it is made, and ComputeFailure when there is none. */
  imageFor(choice: ImageChoice): NodeImage;
  /** Image of Incus and directory of the code, made first where they are missing (seconds). */
  ensure(imageRoot: string, signal: AbortSignal): Promise<{ readonly image: string; readonly code: string }>;
  /** Directory of the code, made first where it is missing (seconds). */
  makeCode(imageRoot: string, signal: AbortSignal): Promise<string>;
  /** Directory of today's code; undefined until it is made. */
  code(): Promise<string | undefined>;
}

export function createIncusMaterials(deps: {
  readonly nodeImages: NodeImages;
  readonly images: IncusImages;
  readonly code: MachineCode;
  readonly lock: DirectoryLock;
}): IncusMaterials {
  const { nodeImages, images, code, lock } = deps;

  async function makeCode(imageRoot: string, signal: AbortSignal): Promise<string> {
    await lock.hold("code", signal, () => code.make(imageRoot, signal));
    const directory = await code.openTo(inside.agent);
    if (directory === undefined) throw new ComputeFailure("The code of machines could not be made; the log says why.");
    return directory;
  }

  return {
    imageFor(choice) {
      const image = nodeImages.require(choice);
      if (image === undefined) throw new ComputeFailure("Machines of Incus need a node image.");
      return image;
    },
    async ensure(imageRoot, signal) {
      const [image, directory] = await Promise.all([images.ensure(imageRoot, signal), makeCode(imageRoot, signal)]);
      return { image, code: directory };
    },
    makeCode,
    code: () => code.openTo(inside.agent),
  };
}
