import { dirname } from "node:path";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import type { MachineSpec } from "../compute-provider.ts";
import type { Layout, MachinePaths } from "../host/machine-paths.ts";
import { type MachineRecord, readRecord, writeRecord } from "../host/machine-record.ts";
import { codeInside, init } from "../host/place.ts";
import type { EdgePlace } from "./edge-rules.ts";
import { hostLink, removeLink } from "./host-link.ts";
import type { IncusClient } from "./incus-client.ts";
import type { IncusMaterials } from "./incus-materials.ts";
import { imageKey, instanceConfig, instanceName } from "./instance-config.ts";
import type { Instance, InstancePower } from "./instance-power.ts";
import { closeEdge } from "./machine-edge.ts";
import { growMountedDisk, mountDisk } from "./mounted-disk.ts";

/** Instances of Incus as machines have them: made around a data disk, and started with what is of today. */
export interface Instances {
  /** Makes what is missing of a machine: its disk, its record, its instance. */
  make(spec: MachineSpec, signal: AbortSignal): Promise<void>;
  /** Starts one that is stopped, and counts the start before it happens. */
  launch(id: string, record: MachineRecord, instance: Instance, signal: AbortSignal): Promise<void>;
}

export interface InstancesDeps {
  readonly incus: IncusClient;
  readonly power: InstancePower;
  readonly materials: IncusMaterials;
  readonly layout: Layout;
  readonly edge: EdgePlace;
  /** Storage pool for the root of a tier's machine. */
  readonly pool: (tier: string) => string;
  readonly addressBlock: string;
  /** Path of the node binary on the host. */
  readonly node: string;
  /** First program of a machine; the keeper when undefined. */
  readonly command: readonly string[] | undefined;
  /** Makes directories and data disk of a machine, and its record. */
  readonly makeMachine: (spec: MachineSpec, image: NodeImage) => Promise<MachineRecord>;
}

const keeper = [...init, "/holdfast/node/node", "--max-semi-space-size=1", `${codeInside}/keeper.mjs`];

export function createInstances(deps: InstancesDeps): Instances {
  const { incus, power, materials, layout, edge, addressBlock, node } = deps;

  /** A machine starts with today's code and node, whatever it was made with. */
  async function refreshCode({ name, devices }: Instance, signal: AbortSignal): Promise<void> {
    const sources = { code: await materials.code(), node: dirname(node) };
    const stale = Object.entries(sources).filter(([key, source]) => source && devices[key]?.["source"] !== source);
    if (stale.length === 0) return;
    const fresh = stale.map(([key, source]) => [key, { ...devices[key], source }]);
    await incus.call("PATCH", `/1.0/instances/${name}`, signal, { devices: Object.fromEntries(fresh) });
  }

  /** Makes the root anew when another image was put under the data disk. */
  async function refreshImage(record: MachineRecord, { name, config }: Instance, signal: AbortSignal): Promise<void> {
    const { image } = record;
    if (image === undefined || config[imageKey] === image) return;
    const made = await materials.ensure(materials.imageFor({ ...record.spec, image }).root, signal);
    const source = { type: "image", fingerprint: made.image };
    await incus.run("POST", `/1.0/instances/${name}/rebuild`, signal, { source });
    await incus.call("PATCH", `/1.0/instances/${name}`, signal, { config: { [imageKey]: image } });
  }

  return {
    async make(spec, signal) {
      const paths = layout.machine(spec.id);
      const before = await readRecord(paths.record);
      const image = materials.imageFor({ ...spec, ...(before?.image !== undefined && { image: before.image }) });
      const [made] = await Promise.all([
        materials.ensure(image.root, signal),
        // Somebody who gave up waiting may have begun it: it is being made all the same.
        incus.settled(instanceName(spec.id), signal),
      ]);
      // An instance that Incus has lost is made again around the disk that it had.
      const known = before ?? (await deps.makeMachine(spec, image));
      await mountDisk(paths);
      const { unfinished, ...record } = await fillDisk(paths, known);
      const instance = instanceConfig({
        ...made,
        nodeImage: image.id,
        machineId: spec.id,
        installationId: spec.installationId,
        pool: deps.pool(spec.storageTier),
        plan: spec.plan,
        address: record.address,
        publicAddress: record.publicAddress,
        hostAddress: edge.hostAddress,
        hostName: hostLink(addressBlock, record.number),
        paths,
        node,
        command: deps.command ?? keeper,
      });
      const there = await power.look(spec.id, signal);
      if (there !== undefined && !unfinished) return;
      // A daemon that was killed while it made it knows its name and has no root for it.
      if (there !== undefined) await incus.run("DELETE", `/1.0/instances/${instance.name}`, signal);
      await writeRecord(paths.record, { ...record, unfinished: true });
      await power.create(instance, signal);
      await writeRecord(paths.record, record);
    },
    async launch(id, record, instance, signal) {
      const paths = layout.machine(id);
      const [, filled] = await Promise.all([
        closeEdge(edge, signal),
        // Incus looks for the mount when it is told of other code.
        mountDisk(paths).then(async () => {
          await refreshCode(instance, signal);
          return fillDisk(paths, record);
        }),
        removeLink(hostLink(addressBlock, record.number)),
      ]);
      await refreshImage(filled, instance, signal);
      await writeRecord(paths.record, { ...filled, starts: filled.starts + 1 });
      await power.start(id, signal);
    },
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
