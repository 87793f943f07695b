import type { ComputeProvider, MachinePlan } from "./compute-provider.ts";

/**
 * A provider under test, and actions on its machines that do not use the provider. Machines run a small test program
 * instead of the keeper.
 */
export interface ConformanceSubject {
  readonly provider: ComputeProvider;
  /** A second provider over the same machines, as another controller opens it. */
  readonly second: ComputeProvider;
  /** Network of at least 200 public addresses that both providers assign from. */
  readonly publicBlock: string;
  /**
   * True if all processes of a machine end with its first one. Otherwise the machine is empty after `fence`, and before
   * its next start.
   */
  readonly contained: boolean;
  /** Identities of a machine's processes, as the host sees them. */
  processesOf(machineId: string): Promise<readonly string[]>;
  /** The processes among these that still run. */
  alive(processes: readonly string[]): readonly string[];
  /** Kills the machine's first process. */
  crash(machineId: string): Promise<void>;
  /** Simulates a reboot of the host: no machine runs, and recorded process ids belong to other processes. */
  reboot(machineId: string): Promise<void>;
  /** Size of /data inside the machine, bytes; undefined if the provider cannot enforce it. */
  dataBytes(machineId: string): Promise<number | undefined>;
  /** Id of a second image: a copy of the newest one, plus the file /etc/other-image. */
  otherImage(): Promise<string>;
  /** Host path of this path inside the running machine. */
  seen(machineId: string, path: string): Promise<string>;
  /** A storage tier whose file system can clone files; undefined if the host has none. */
  readonly cloneTier: string | undefined;
  /**
   * True if the running machine can allocate this much outside of its data disk. Undefined if it has no writable root,
   * or if the host cannot test it.
   */
  rootCanAllocate(machineId: string, bytes: number): Promise<boolean | undefined>;
  /** CPU and memory limits that the host enforces on the running machine; undefined if it cannot. */
  limits(machineId: string): Promise<MachinePlan | undefined>;
  /** The machine's enrollment file as its own user reads it, with its mode. */
  enrollment(machineId: string): Promise<{ content: unknown; mode: number }>;
  /** Remains of all machines on the host: directories, mounts, devices. */
  leftovers(): Promise<readonly string[]>;
  close(): Promise<void>;
}
