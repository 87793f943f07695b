import { createHash } from "node:crypto";
import { getServers } from "node:dns";
import { truncate } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import type { GuestBoots } from "../local/guest-boots.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
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
  readonly boot: GuestBoots["require"];
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
    const [imageDisk, codeDisk, nodeDisk] = await Promise.all([
      packed.pack(image.id, image.root, signal),
      packed.pack(`code-${basename(code)}`, code, signal),
      packed.pack(`node-${nodeName}`, dirname(node), signal),
    ]);
    return { image: imageDisk, code: codeDisk, node: nodeDisk };
  }

  async function describe(facts: InstanceFacts, image: NodeImage, signal: AbortSignal) {
    const [booted, shared] = await Promise.all([boot(facts.guestKernel, signal), sharedDisks(image, signal)]);
    return virtualMachineConfig({
      ...facts,
      boot: booted,
      disks: { ...shared, ...(await openOwnDisks(facts.paths)) },
      monitor: monitorOf(facts.paths),
      resolvers: getServers(),
      command,
    });
  }

  return {
    ensure: async (image, signal) => void (await sharedDisks(image, signal)),
    kernelFor: async (chosen, signal) => (await boot(chosen, signal)).id,
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
