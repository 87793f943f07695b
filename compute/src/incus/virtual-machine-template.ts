import { createHash } from "node:crypto";
import { getServers } from "node:dns";
import { truncate } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import type { GuestBoots } from "../local/guest-boots.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import { openOwnDisks, type PackedDirectories, writeEnrollmentDisk } from "./guest-disks.ts";
import { resizeGuestDisk } from "./guest-monitor.ts";
import type { IncusClient } from "./incus-client.ts";
import type { InstanceSources } from "./instance-sources.ts";
import type { InstanceFacts } from "./instance-config.ts";
import type { InstanceTemplate } from "./instance-template.ts";
import { isUp } from "./instance-power.ts";
import { unmountDisk } from "./mounted-disk.ts";
import { virtualMachineConfig } from "./virtual-machine-config.ts";

export interface VirtualMachineTemplateDeps {
  readonly incus: IncusClient;
  readonly sources: Pick<InstanceSources, "makeCode">;
  readonly packed: PackedDirectories;
  readonly boot: GuestBoots["require"];
  /** Path of the Node.js binary on the host. */
  readonly node: string;
  /** First program of a machine with its arguments; paths are those inside. */
  readonly command: readonly string[];
}

/**
 * The template of virtual machines: they boot a guest kernel, and have the files of a container as block devices. Only
 * the guest mounts the data disk, never the host.
 */
export function createVirtualMachineTemplate(deps: VirtualMachineTemplateDeps): InstanceTemplate {
  const { incus, sources, packed, boot, node, command } = deps;

  async function sharedDisks(image: NodeImage, signal: AbortSignal) {
    const code = await sources.makeCode(image.root, signal);
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
      // The guest grows the file system to its disk when it starts.
      return record;
    },
    describe,
    async refresh({ name }, facts, image, signal) {
      const { config, devices } = await describe(facts, image(), signal);
      await incus.call("PATCH", `/1.0/instances/${name}`, signal, { config, devices });
    },
    enroll: writeEnrollmentDisk,
    // A running guest cannot get more memory; the next start applies the record, root included.
    resize: async () => undefined,
    async growDisk(instance, paths, diskBytes) {
      await truncate(paths.diskFile, diskBytes);
      if (isUp(instance)) await resizeGuestDisk(monitorOf(paths), "data", diskBytes);
    },
    // Only the guest has the data disk open, and it is stopped.
    whileDiskClosed: (_paths, _signal, work) => work(),
  };
}

/** Socket of a guest's QEMU monitor. */
function monitorOf(paths: MachinePaths): string {
  return join(paths.directory, "monitor.sock");
}
