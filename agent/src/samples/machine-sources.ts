import { availableParallelism } from "node:os";
import type { ControlGroup } from "../os/control-group.ts";
import { diskOperations } from "../os/disk-activity.ts";
import { measureUsable } from "../os/disk-reserve.ts";
import { networkTraffic } from "../os/network-traffic.ts";
import { createRate } from "../workload/rate.ts";
import type { SampleSource } from "../workload/sample-source.ts";

export interface MachineSourcesDeps {
  readonly group: ControlGroup;
  readonly dataDir: string;
  /** Requested storage in bytes; undefined before the first settings. */
  readonly storageBytes: () => number | undefined;
  /** Network interface that only this machine uses; empty if it shares the host's network. */
  readonly networkInterface: string;
  readonly monotonicMs: () => number;
}

const noGroup = "This host has no control group per machine, so CPU and memory of the machine are not measured.";
const sharedNetwork = "The machine shares its host's network interface, so its traffic is not measured.";
const sharedDisk = "The machine shares a disk with others, so its I/O is not measured.";
const hostCpus = availableParallelism();
/** Max interval between two readings for a rate: after a longer one the growth may have happened at any time in it. */
const maxGapMs = 60_000;

/** Sources of the machine's own metrics: processor and memory, disk, network. */
export function createMachineSources(deps: MachineSourcesDeps): SampleSource[] {
  return [processorAndMemory(deps), disk(deps), network(deps)];
}

function processorAndMemory({ group, monotonicMs }: MachineSourcesDeps): SampleSource {
  const used = createRate(maxGapMs);
  return {
    async read() {
      const [usedUs, limit, needed, limitBytes] = await Promise.all([
        group.cpuUsedUs(),
        group.cpuLimit(),
        group.memoryNeededBytes(),
        group.memoryLimitBytes(),
      ]);
      const usPerSecond = used.next(usedUs, monotonicMs());
      // The limit may exceed the host's CPUs.
      const cpus = Math.min(limit ?? hostCpus, hostCpus);
      const isLimited = needed !== undefined && limitBytes !== undefined && Number.isFinite(limitBytes);
      return {
        values: {
          cpu: usPerSecond === undefined ? undefined : percentOf(usPerSecond, cpus * 1_000_000),
          memory: isLimited ? percentOf(needed, limitBytes) : undefined,
        },
        absent: {
          ...(usedUs === undefined && { cpu: noGroup }),
          ...(!isLimited && { memory: noGroup }),
        },
      };
    },
  };
}

function disk({ group, dataDir, storageBytes, monotonicMs }: MachineSourcesDeps): SampleSource {
  const completed = createRate(maxGapMs);
  return {
    async read(signal) {
      const { usedBytes, totalBytes, isSeparate } = await measureUsable(dataDir, storageBytes() ?? 0, signal);
      const operations = (isSeparate ? await diskOperations(dataDir) : undefined) ?? (await group.diskOperations());
      return {
        values: {
          disk: totalBytes === 0 ? undefined : percentOf(usedBytes, totalBytes),
          disk_iops: completed.next(operations, monotonicMs()),
        },
        absent: operations === undefined ? { disk_iops: sharedDisk } : {},
      };
    },
  };
}

function network({ networkInterface, monotonicMs }: MachineSourcesDeps): SampleSource {
  const [received, sent] = [createRate(maxGapMs), createRate(maxGapMs)];
  return {
    async read() {
      const traffic = networkInterface === "" ? undefined : await networkTraffic(networkInterface);
      const atMs = monotonicMs();
      return {
        values: {
          network_in: received.next(traffic?.receivedBytes, atMs),
          network_out: sent.next(traffic?.sentBytes, atMs),
        },
        absent: networkInterface === "" ? { network_in: sharedNetwork, network_out: sharedNetwork } : {},
      };
    },
  };
}

/** Percent. Values above 100 come from clock jitter. */
function percentOf(part: number, total: number): number {
  return Math.min(100, (part / total) * 100);
}
