import { createHash } from "node:crypto";
import { getServers } from "node:dns";
import { truncate } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { GuestBoot } from "@holdfast/image/guest-boot.ts";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { MachinePaths } from "../host/machine-paths.ts";
import { openOwnDisks, type PackedDirectories, writeEnrollmentDisk } from "./guest-disks.ts";
import { tellDiskSize } from "./guest-monitor.ts";
import type { IncusClient } from "./incus-client.ts";
import type { IncusMaterials } from "./incus-materials.ts";
import type { InstanceFacts } from "./instance-config.ts";
import type { InstanceForm } from "./instance-form.ts";
import { isUp } from "./instance-power.ts";
import { unmountDisk } from "./mounted-disk.ts";
import { virtualMachineConfig } from "./virtual-machine-config.ts";

export interface VirtualMachineFormDeps {
  readonly incus: IncusClient;
  readonly materials: Pick<IncusMaterials, "makeCode">;
  readonly packed: PackedDirectories;
  /** Kernel and initramfs, made first where they are missing. */
  readonly boot: (signal: AbortSignal) => Promise<GuestBoot>;
  /** Path of the node binary on the host. */
  readonly node: string;
  /** First program of a machine and its arguments, with paths as they are inside. */
  readonly command: readonly string[];
}

/**
 * Virtual machines: a kernel of their own, and disks. The same files as a container has, as block devices: the data disk is
 * the guest's to mount, never the host's.
 */
export function createVirtualMachineForm(deps: VirtualMachineFormDeps): InstanceForm {
  const { incus, materials, packed, boot, node, command } = deps;

  async function sharedDisks(image: NodeImage, signal: AbortSignal) {
    const code = await materials.makeCode(image.root, signal);
    const nodeName = createHash("sha256").update(`${process.version} ${node}`).digest("hex").slice(0, 16);
    const [made, imageDisk, codeDisk, nodeDisk] = await Promise.all([
      boot(signal).catch((error: unknown) => {
        throw new ComputeFailure(
          `What virtual machines boot from could not be made: ${error instanceof Error ? error.message : String(error)}`,
          {
            cause: error,
          },
        );
      }),
      packed.pack(image.id, image.root, signal),
      packed.pack(`code-${basename(code)}`, code, signal),
      packed.pack(`node-${nodeName}`, dirname(node), signal),
    ]);
    return { boot: made, disks: { image: imageDisk, code: codeDisk, node: nodeDisk } };
  }

  async function describe(facts: InstanceFacts, image: NodeImage, signal: AbortSignal) {
    const [shared, own] = [await sharedDisks(image, signal), await openOwnDisks(facts.paths)];
    return virtualMachineConfig({
      ...facts,
      boot: shared.boot,
      disks: { ...shared.disks, ...own },
      monitor: monitorOf(facts.paths),
      resolvers: getServers(),
      command,
    });
  }

  return {
    ensure: async (image, signal) => void (await sharedDisks(image, signal)),
    async openDisks(paths, record) {
      await unmountDisk(paths);
      await openOwnDisks(paths);
      // The guest makes the file system as large as its disk when it starts.
      return record;
    },
    describe,
    async refresh({ name }, facts, image, signal) {
      const { config, devices } = await describe(facts, image(), signal);
      await incus.call("PATCH", `/1.0/instances/${name}`, signal, { config, devices });
    },
    enroll: writeEnrollmentDisk,
    // A guest cannot be given memory beyond what it started with; it has what its record says, root too, from its next start on.
    resize: async () => undefined,
    async growDisk(instance, paths, diskBytes) {
      await truncate(paths.diskFile, diskBytes);
      if (isUp(instance)) await tellDiskSize(monitorOf(paths), "data", diskBytes);
    },
    // Only the guest ever has it open.
    whileClosed: (_paths, _signal, work) => work(),
  };
}

/** Socket of a guest's monitor. */
function monitorOf(paths: MachinePaths): string {
  return join(paths.directory, "monitor.sock");
}
