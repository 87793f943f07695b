import type { ComputeProvider, MachinePlan } from "./compute-provider.ts";

/** A provider under test, and what the suite must do behind its back. Machines run a small program, not the keeper. */
export interface ConformanceSubject {
  readonly provider: ComputeProvider;
  /** Another provider over the same machines, as another controller has it. */
  readonly second: ComputeProvider;
  /** Network of at least 200 public addresses that both give to machines. */
  readonly publicBlock: string;
  /** Does all of a machine end with its first process? If not, it is empty after `fence`, and before its next start. */
  readonly contained: boolean;
  /** Identities of all that runs of a machine, as its host knows them. */
  processesOf(machineId: string): Promise<readonly string[]>;
  /** Which of these still run. */
  alive(processes: readonly string[]): readonly string[];
  /** Kills the machine's first process, as an accident would. */
  crash(machineId: string): Promise<void>;
  /** Makes the host look as after a reboot: nothing runs, and notes of what ran name processes that are others now. */
  reboot(machineId: string): Promise<void>;
  /** Size of /data as the machine sees it; undefined where the provider cannot make it true. */
  dataBytes(machineId: string): Promise<number | undefined>;
  /** Id of an image besides the newest one, with the same engines: a copy of it, with the file /etc/other-image besides. */
  otherImage(): Promise<string>;
  /** The path on the host of what the running machine sees at this one. */
  seen(machineId: string, path: string): Promise<string>;
  /** A storage tier whose file system can clone files; undefined where the host has none. */
  readonly cloneTier: string | undefined;
  /**
   * Can the running machine set aside so much outside of its data disk? Undefined where it has no root of its own to write to,
   * or where its host cannot ask it.
   */
  rootTakes(machineId: string, bytes: number): Promise<boolean | undefined>;
  /** CPU and memory that the host holds the running machine to; undefined where it cannot. */
  limits(machineId: string): Promise<MachinePlan | undefined>;
  /** The machine's enrollment file as its own user reads it, with its mode. */
  enrollment(machineId: string): Promise<{ content: unknown; mode: number }>;
  /** What is left of all machines on the host: directories, mounts, devices. */
  leftovers(): Promise<readonly string[]>;
  close(): Promise<void>;
}
