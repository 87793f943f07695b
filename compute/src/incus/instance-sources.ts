import type { NodeImage } from "@holdfast/image/node-image.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { DirectoryLock } from "../local/directory-lock.ts";
import type { ImageChoice, NodeImages } from "../local/node-images.ts";
import type { MachineCode } from "../process/machine-code.ts";
import type { IncusImages } from "./incus-images.ts";
import { instanceUsers } from "./instance-config.ts";

/** Sources of instances: images and code. */
export interface InstanceSources {
  /** Node image for a machine. Throws ComputePending while it is built, and ComputeFailure if there is none. */
  imageFor(choice: ImageChoice): NodeImage;
  /** Incus image and code directory; creates the missing ones (seconds). */
  ensure(imageRoot: string, signal: AbortSignal): Promise<{ readonly image: string; readonly code: string }>;
  /** Code directory; created first if it is missing (seconds). */
  makeCode(imageRoot: string, signal: AbortSignal): Promise<string>;
  /** Directory of the current code; undefined until it is built. */
  code(): Promise<string | undefined>;
}

export function createInstanceSources(deps: {
  readonly nodeImages: NodeImages;
  readonly images: IncusImages;
  readonly code: MachineCode;
  readonly lock: DirectoryLock;
}): InstanceSources {
  const { nodeImages, images, code, lock } = deps;

  async function makeCode(imageRoot: string, signal: AbortSignal): Promise<string> {
    await lock.withLock("code", signal, () => code.make(imageRoot, signal));
    const directory = await code.openTo(instanceUsers.agent);
    if (directory === undefined)
      throw new ComputeFailure("The machine code could not be built; the log has the reason.");
    return directory;
  }

  return {
    imageFor(choice) {
      const image = nodeImages.require(choice);
      if (image === undefined) throw new ComputeFailure("Incus machines need a node image.");
      return image;
    },
    async ensure(imageRoot, signal) {
      const [image, directory] = await Promise.all([images.ensure(imageRoot, signal), makeCode(imageRoot, signal)]);
      return { image, code: directory };
    },
    makeCode,
    code: () => code.openTo(instanceUsers.agent),
  };
}
