import { lookUp } from "@holdfast/common/look-up.ts";
import type { NodeImage } from "@holdfast/image/node-image.ts";
import type { InstanceKind, MachineSpec } from "../compute-provider.ts";
import type { ImageChoice } from "../local/node-images.ts";
import type { Layout } from "../local/machine-paths.ts";
import { type MachineRecord, readRecord, writeRecord } from "../local/machine-record.ts";
import type { EdgePlace } from "./edge-rules.ts";
import { hostLink, removeLink } from "./host-link.ts";
import type { IncusClient } from "./incus-client.ts";
import { guestKey, type InstanceFacts, instanceName } from "./instance-config.ts";
import type { InstanceForm } from "./instance-form.ts";
import type { Instance, InstancePower } from "./instance-power.ts";
import { closeEdge } from "./machine-edge.ts";

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
  readonly forms: Readonly<Record<InstanceKind, InstanceForm>>;
  /** The node image for a machine. */
  readonly imageFor: (choice: ImageChoice) => NodeImage;
  readonly layout: Layout;
  readonly edge: EdgePlace;
  /** Storage pool for the root of a tier's machine. */
  readonly pool: (tier: string) => string;
  readonly addressBlock: string;
  /** Makes directories and data disk of a machine, and its record. */
  readonly makeMachine: (spec: MachineSpec, image: NodeImage) => Promise<MachineRecord>;
}

export function createInstances(deps: InstancesDeps): Instances {
  const { incus, power, forms, imageFor, layout, edge, addressBlock } = deps;

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
      const form = forms[kindOf(spec)];
      const before = await readRecord(paths.record);
      const image = imageFor({ ...spec, ...(before?.image !== undefined && { image: before.image }) });
      const [guestKernel] = await Promise.all([
        form.kernelFor(before?.guestKernel ?? spec.guestKernel, signal),
        form.ensure(image, signal),
        // Somebody who gave up waiting may have begun it: it is being made all the same.
        incus.settled(instanceName(spec.id), signal),
      ]);
      // An instance that Incus has lost is made again around the disk that it had.
      const known = before ?? (await deps.makeMachine(spec, image));
      const { unfinished, ...opened } = await form.openDisks(paths, known);
      const record = withKernel(opened, guestKernel);
      const instance = await form.describe({ ...factsOf(record), nodeImage: image.id, plan: spec.plan }, image, signal);
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
      const form = forms[kindOf(record.spec)];
      const [, opened] = await Promise.all([
        closeEdge(edge, signal),
        form.openDisks(paths, record),
        removeLink(hostLink(addressBlock, record.number)),
      ]);
      const image = () => imageFor({ ...record.spec, ...(record.image !== undefined && { image: record.image }) });
      // A machine from before kernels were pinned keeps the kernel that it booted last.
      const pinned = withKernel(opened, opened.guestKernel ?? lookUp(instance.config, guestKey));
      await form.refresh(instance, factsOf(pinned), image, signal);
      await writeRecord(paths.record, { ...pinned, starts: record.starts + 1 });
      await power.start(id, signal);
    },
  };
}

function withKernel(record: MachineRecord, guestKernel: string | undefined): MachineRecord {
  return guestKernel === undefined ? record : { ...record, guestKernel };
}

/** Machines that were made before there was a choice are containers. */
export function kindOf({ kind }: Pick<MachineSpec, "kind">): InstanceKind {
  return kind ?? "container";
}
