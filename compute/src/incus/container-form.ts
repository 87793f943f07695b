import { dirname } from "node:path";
import { lookUp } from "@holdfast/common/look-up.ts";
import { rootBytesOf } from "../compute-provider.ts";
import { writeEnrollment } from "../local/enrollment-file.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import { type MachineRecord, writeRecord } from "../local/machine-record.ts";
import type { IncusClient } from "./incus-client.ts";
import type { IncusMaterials } from "./incus-materials.ts";
import { imageKey, inside, instanceConfig, limitsOf } from "./instance-config.ts";
import type { InstanceForm } from "./instance-form.ts";
import type { Instance } from "./instance-power.ts";
import { growMountedDisk, mountDisk, whileUnmounted } from "./mounted-disk.ts";

export interface ContainerFormDeps {
  readonly incus: IncusClient;
  readonly materials: IncusMaterials;
  /** Path of the node binary on the host. */
  readonly node: string;
  /** First program of a machine and its arguments, with paths as they are inside. */
  readonly command: readonly string[];
}

/** Containers: directories of the host, seen through shifted mounts, around a root out of an imported image. */
export function createContainerForm({ incus, materials, node, command }: ContainerFormDeps): InstanceForm {
  /** A machine starts with today's code and node, whatever it was made with. */
  async function refreshCode({ name, devices }: Instance, signal: AbortSignal): Promise<void> {
    const sources = { code: await materials.code(), node: dirname(node) };
    const stale = Object.entries(sources).filter(
      ([key, source]) => source && lookUp(devices, key)?.["source"] !== source,
    );
    if (stale.length === 0) return;
    const fresh = stale.map(([key, source]) => [key, { ...lookUp(devices, key), source }]);
    await incus.call("PATCH", `/1.0/instances/${name}`, signal, { devices: Object.fromEntries(fresh) });
  }

  return {
    ensure: async (image, signal) => void (await materials.ensure(image.root, signal)),
    kernelFor: async () => undefined,
    async openDisks(paths, record) {
      await mountDisk(paths);
      return fillDisk(paths, record);
    },
    async describe(facts, image, signal) {
      const made = await materials.ensure(image.root, signal);
      return instanceConfig({ ...facts, ...made, node, command });
    },
    async refresh(instance, facts, image, signal) {
      await refreshCode(instance, signal);
      const { name, config } = instance;
      if (facts.nodeImage === "" || lookUp(config, imageKey) === facts.nodeImage) return;
      // The root is made anew when another image was put under the data disk.
      const made = await materials.ensure(image().root, signal);
      const source = { type: "image", fingerprint: made.image };
      await incus.run("POST", `/1.0/instances/${name}/rebuild`, signal, { source });
      await incus.call("PATCH", `/1.0/instances/${name}`, signal, { config: { [imageKey]: facts.nodeImage } });
    },
    enroll: (paths, machineId, enrollment) =>
      writeEnrollment(paths, machineId, enrollment, { uid: inside.agent, gid: inside.engine }),
    async resize(plan, { name, devices: { root } }, signal) {
      const devices = { root: { ...root, size: String(rootBytesOf(plan)) } };
      await incus.call("PATCH", `/1.0/instances/${name}`, signal, { config: limitsOf(plan), devices });
    },
    growDisk: (_, paths, diskBytes) => growMountedDisk(paths, diskBytes),
    whileClosed: whileUnmounted,
  };
}

/** The file system of a disk that was made ahead is smaller than the disk, as is one that was put back as it was. */
async function fillDisk(paths: MachinePaths, record: MachineRecord): Promise<MachineRecord> {
  const { diskBytes, formattedBytes } = record;
  if (formattedBytes >= diskBytes) return record;
  await growMountedDisk(paths, diskBytes);
  const filled = { ...record, formattedBytes: diskBytes };
  await writeRecord(paths.record, filled);
  return filled;
}
