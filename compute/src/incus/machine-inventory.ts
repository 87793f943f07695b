import type { Log } from "@holdfast/common/log.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { type MachineFacts, rootBytesOf } from "../compute-provider.ts";
import { namesIn } from "../local/atomic-file.ts";
import { snapshotsOf } from "../local/disk-snapshots.ts";
import type { Layout } from "../local/machine-paths.ts";
import { type MachineRecord, readRecord } from "../local/machine-record.ts";
import type { IncusClient } from "./incus-client.ts";
import { guestKey, machineIdOf } from "./instance-config.ts";
import { type Instance, type InstancePower, isUp } from "./instance-power.ts";

/** Inventory of the machines on this host: their directories, and the current report of Incus on their instances. */
export interface MachineInventory {
  get(id: string, signal: AbortSignal): Promise<MachineFacts | undefined>;
  /** Includes machines that have only a directory, or only an instance. */
  list(signal: AbortSignal): Promise<MachineFacts[]>;
  /** Throws ComputeFailure if there is no such machine. */
  record(id: string): Promise<MachineRecord>;
  records(): Promise<MachineRecord[]>;
  watch(onChange: (machineId: string) => void): { close(): void };
}

export interface MachineInventoryDeps {
  readonly incus: Pick<IncusClient, "call" | "events">;
  readonly power: Pick<InstancePower, "find">;
  readonly layout: Layout;
  readonly log: Log;
}

export function createMachineInventory({ incus, power, layout, log }: MachineInventoryDeps): MachineInventory {
  async function ids(): Promise<string[]> {
    return (await namesIn(layout.machines)).filter(isMachineId);
  }

  return {
    async get(id, signal) {
      const instance = await power.find(id, signal);
      const record = await readRecord(layout.machine(id).record);
      if (instance === undefined && record === undefined && !(await ids()).includes(id)) return undefined;
      return factsOf(id, instance, record, await snapshotsOf(layout.machine(id).diskFile));
    },
    async list(signal) {
      const instances = await incus.call<Instance[]>("GET", "/1.0/instances?recursion=1", signal);
      const all = new Map<string, Instance | undefined>((await ids()).map((id) => [id, undefined]));
      for (const instance of instances) {
        const id = machineIdOf(instance.name);
        if (id !== undefined) all.set(id, instance);
      }
      return Promise.all(
        [...all].map(async ([id, instance]) => {
          const { record, diskFile } = layout.machine(id);
          return factsOf(id, instance, await readRecord(record), await snapshotsOf(diskFile));
        }),
      );
    },
    async record(id) {
      const record = await readRecord(layout.machine(id).record);
      if (record === undefined) throw new ComputeFailure(`Machine ${id} does not exist.`);
      return record;
    },
    async records() {
      const records = await Promise.all((await ids()).map((id) => readRecord(layout.machine(id).record)));
      return records.filter((record) => record !== undefined);
    },
    watch(onChange) {
      return incus.events.subscribe({
        event(event) {
          if (event.type !== "lifecycle" || !event.metadata.action.startsWith("instance-")) return;
          const id = machineIdOf(event.metadata.name ?? "");
          if (id !== undefined) onChange(id);
        },
        opened() {
          ids().then(
            (all) => all.forEach(onChange),
            (error: Error) => log.error("machines not listed", { error: error.message }),
          );
        },
      });
    },
  };
}

/** Facts of a machine; an incomplete one has an empty address. */
function factsOf(
  id: string,
  instance: Instance | undefined,
  record: MachineRecord | undefined,
  snapshots: readonly string[],
): MachineFacts {
  const { starts, diskBytes, spec } = record ?? { starts: 0, diskBytes: 0, spec: undefined };
  const guestKernel = record?.guestKernel ?? lookUp(instance?.config ?? {}, guestKey);
  const isComplete = instance !== undefined && record !== undefined && record.unfinished !== true;
  return {
    id,
    state: isUp(instance) ? "running" : "stopped",
    address: isComplete ? record.address : "",
    publicAddress: isComplete ? (record.publicAddress ?? record.address) : "",
    diskBytes,
    plan: spec === undefined ? { vcpu: 0, memoryBytes: 0 } : { ...spec.plan, rootBytes: rootBytesOf(spec.plan) },
    image: record?.image ?? "",
    ...(guestKernel !== undefined && { guestKernel }),
    hasData: starts > 0,
    starts,
    snapshots,
  };
}

/** Ids are directory names and, after the prefix `hf-`, instance names. */
export function isMachineId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9-]{0,58}[A-Za-z0-9]$/.test(id);
}
