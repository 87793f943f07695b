import { dirname } from "node:path";
import { lookUp } from "@holdfast/common/look-up.ts";
import { rootBytesOf } from "../compute-provider.ts";
import { writeEnrollment } from "../local/enrollment-file.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import { type MachineRecord, writeRecord } from "../local/machine-record.ts";
import type { IncusClient } from "./incus-client.ts";
import type { InstanceSources } from "./instance-sources.ts";
import { imageKey, instanceUsers, instanceConfig, limitsOf } from "./instance-config.ts";
import type { InstanceTemplate } from "./instance-template.ts";
import type { Instance } from "./instance-power.ts";
import { growMountedDisk, mountDisk, whileUnmounted } from "./mounted-disk.ts";

export interface ContainerTemplateDeps {
  readonly incus: IncusClient;
  readonly sources: InstanceSources;
  /** Path of the Node.js binary on the host. */
  readonly node: string;
  /** First program of a machine with its arguments; paths are those inside. */
  readonly command: readonly string[];
}

/** The template of containers: host directories in shifted mounts, on a root from an imported image. */
export function createContainerTemplate({ incus, sources, node, command }: ContainerTemplateDeps): InstanceTemplate {
  /** Updates the devices to the current code and Node.js: each start uses the newest ones. */
  async function refreshCode({ name, devices }: Instance, signal: AbortSignal): Promise<void> {
    const current = { code: await sources.code(), node: dirname(node) };
    const stale = Object.entries(current).filter(
      ([key, source]) => source && lookUp(devices, key)?.["source"] !== source,
    );
    if (stale.length === 0) return;
    const updated = stale.map(([key, source]) => [key, { ...lookUp(devices, key), source }]);
    await incus.call("PATCH", `/1.0/instances/${name}`, signal, { devices: Object.fromEntries(updated) });
  }

  return {
    ensure: async (image, signal) => void (await sources.ensure(image.root, signal)),
    kernelFor: async () => undefined,
    async openDisks(paths, record) {
      await mountDisk(paths);
      return fillDisk(paths, record);
    },
    async describe(facts, image, signal) {
      const built = await sources.ensure(image.root, signal);
      return instanceConfig({ ...facts, ...built, node, command });
    },
    async refresh(instance, facts, image, signal) {
      await refreshCode(instance, signal);
      const { name, config } = instance;
      if (facts.nodeImage === "" || lookUp(config, imageKey) === facts.nodeImage) return;
      // A changed image replaces the root.
      const built = await sources.ensure(image().root, signal);
      const source = { type: "image", fingerprint: built.image };
      await incus.run("POST", `/1.0/instances/${name}/rebuild`, signal, { source });
      await incus.call("PATCH", `/1.0/instances/${name}`, signal, { config: { [imageKey]: facts.nodeImage } });
    },
    enroll: (paths, machineId, enrollment) =>
      writeEnrollment(paths, machineId, enrollment, { uid: instanceUsers.agent, gid: instanceUsers.engine }),
    async resize(plan, { name, devices: { root } }, signal) {
      const devices = { root: { ...root, size: String(rootBytesOf(plan)) } };
      await incus.call("PATCH", `/1.0/instances/${name}`, signal, { config: limitsOf(plan), devices });
    },
    growDisk: (_, paths, diskBytes) => growMountedDisk(paths, diskBytes),
    whileDiskClosed: whileUnmounted,
  };
}

/** Grows the file system to its disk: the file system of a prepared disk, or of a restored snapshot, is smaller. */
async function fillDisk(paths: MachinePaths, record: MachineRecord): Promise<MachineRecord> {
  const { diskBytes, formattedBytes } = record;
  if (formattedBytes >= diskBytes) return record;
  await growMountedDisk(paths, diskBytes);
  const filled = { ...record, formattedBytes: diskBytes };
  await writeRecord(paths.record, filled);
  return filled;
}
