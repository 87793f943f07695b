import { lookUp } from "@holdfast/common/look-up.ts";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import type { InstanceKind, MachineSpec } from "../compute-provider.ts";
import type { ImageChoice } from "../local/node-images.ts";
import type { Layout } from "../local/machine-paths.ts";
import { type MachineRecord, readRecord, writeRecord } from "../local/machine-record.ts";
import type { EdgeConfig } from "./edge-rules.ts";
import { hostLink, removeLink } from "./host-link.ts";
import type { IncusClient } from "./incus-client.ts";
import { guestKey, type InstanceFacts, instanceName } from "./instance-config.ts";
import type { InstanceTemplate } from "./instance-template.ts";
import type { Instance, InstancePower } from "./instance-power.ts";
import { closeEdge } from "./machine-edge.ts";

/** Incus instances of machines: created around a data disk, and started with the current code and image. */
export interface Instances {
  /** Creates the missing parts of a machine: disk, record, instance. */
  make(spec: MachineSpec, signal: AbortSignal): Promise<void>;
  /** Starts a stopped instance; counts the start before it happens. */
  launch(id: string, record: MachineRecord, instance: Instance, signal: AbortSignal): Promise<void>;
}

export interface InstancesDeps {
  readonly incus: IncusClient;
  readonly power: InstancePower;
  readonly templates: Readonly<Record<InstanceKind, InstanceTemplate>>;
  /** Node image for a machine. */
  readonly imageFor: (choice: ImageChoice) => NodeImage;
  readonly layout: Layout;
  readonly edge: EdgeConfig;
  /** Storage pool for the root of a tier's machine. */
  readonly pool: (tier: string) => string;
  readonly addressBlock: string;
  /** Creates directories, data disk and record of a machine. */
  readonly makeMachine: (spec: MachineSpec, image: NodeImage) => Promise<MachineRecord>;
}

export function createInstances(deps: InstancesDeps): Instances {
  const { incus, power, templates, imageFor, layout, edge, addressBlock } = deps;

  const factsOf = ({ spec, address, publicAddress, number, image, guestKernel }: MachineRecord): InstanceFacts => ({
    machineId: spec.id,
    installationId: spec.installationId,
    nodeImage: image ?? "",
    guestKernel,
    pool: deps.pool(spec.storageTier),
    plan: spec.plan,
    address,
    publicAddress,
    hostAddress: edge.hostAddress,
    hostName: hostLink(addressBlock, number),
    paths: layout.machine(spec.id),
  });

  return {
    async make(spec, signal) {
      const paths = layout.machine(spec.id);
      const template = templates[kindOf(spec)];
      const before = await readRecord(paths.record);
      const image = imageFor({ ...spec, ...(before?.image !== undefined && { image: before.image }) });
      const [guestKernel] = await Promise.all([
        template.kernelFor(before?.guestKernel ?? spec.guestKernel, signal),
        template.ensure(image, signal),
        // A canceled call may have started the creation, which continues.
        incus.settled(instanceName(spec.id), signal),
      ]);
      // An instance that Incus lost is created again around its existing disk.
      const created = before ?? (await deps.makeMachine(spec, image));
      const { unfinished, ...opened } = await template.openDisks(paths, created);
      const record = withKernel(opened, guestKernel);
      const instance = await template.describe(
        { ...factsOf(record), nodeImage: image.id, plan: spec.plan },
        image,
        signal,
      );
      const existing = await power.find(spec.id, signal);
      if (existing !== undefined && !unfinished) return;
      // A daemon that was killed during the creation has the instance's name but no root.
      if (existing !== undefined) await incus.run("DELETE", `/1.0/instances/${instance.name}`, signal);
      await writeRecord(paths.record, { ...record, unfinished: true });
      await power.create(instance, signal);
      await writeRecord(paths.record, record);
    },
    async launch(id, record, instance, signal) {
      const paths = layout.machine(id);
      const template = templates[kindOf(record.spec)];
      const [, opened] = await Promise.all([
        closeEdge(edge, signal),
        template.openDisks(paths, record),
        removeLink(hostLink(addressBlock, record.number)),
      ]);
      const image = () => imageFor({ ...record.spec, ...(record.image !== undefined && { image: record.image }) });
      // The record of an earlier release has no kernel: the machine retains the kernel that it booted last.
      const pinned = withKernel(opened, opened.guestKernel ?? lookUp(instance.config, guestKey));
      await template.refresh(instance, factsOf(pinned), image, signal);
      await writeRecord(paths.record, { ...pinned, starts: record.starts + 1 });
      await power.start(id, signal);
    },
  };
}

function withKernel(record: MachineRecord, guestKernel: string | undefined): MachineRecord {
  return guestKernel === undefined ? record : { ...record, guestKernel };
}

/** Kind of a machine; specs of earlier releases have none and are containers. */
export function kindOf({ kind }: Pick<MachineSpec, "kind">): InstanceKind {
  return kind ?? "container";
}
