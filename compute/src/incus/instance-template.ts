import type { NodeImage } from "@holdfast/image/node-image.ts";
import type { Enrollment, MachinePlan } from "../compute-provider.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import type { MachineRecord } from "../local/machine-record.ts";
import type { InstanceFacts } from "./instance-config.ts";
import type { Instance } from "./instance-power.ts";

/** The differences between containers and virtual machines: their sources and their disks. */
export interface InstanceTemplate {
  /** Builds the missing sources, such as the import of an image (seconds). */
  ensure(image: NodeImage, signal: AbortSignal): Promise<void>;
  /**
   * Id of the kernel to boot: the chosen one, else the newest; built first if it is missing (a minute). Undefined if
   * machines share the host's kernel.
   */
  kernelFor(chosen: string | undefined, signal: AbortSignal): Promise<string | undefined>;
  /** Prepares the disks for the creation or start of an instance; returns the updated record. */
  openDisks(paths: MachinePaths, record: MachineRecord): Promise<MachineRecord>;
  /** The body of `POST /1.0/instances`. */
  describe(facts: InstanceFacts, image: NodeImage, signal: AbortSignal): Promise<{ readonly name: string }>;
  /** Updates a stopped instance for its next start: current code, and the image and kernel of its facts. */
  refresh(instance: Instance, facts: InstanceFacts, image: () => NodeImage, signal: AbortSignal): Promise<void>;
  /** Writes a new enrollment; a running machine finds it as well. */
  enroll(paths: MachinePaths, machineId: string, enrollment: Enrollment): Promise<void>;
  /** Applies CPU, memory and root, now or at the next start if a running machine cannot change. */
  resize(plan: MachinePlan, instance: Instance, signal: AbortSignal): Promise<void>;
  /** Grows the data disk, online if the instance runs. */
  growDisk(instance: Instance | undefined, paths: MachinePaths, diskBytes: number): Promise<void>;
  /** Runs the work while nothing has the data disk of a stopped machine open. */
  whileDiskClosed(paths: MachinePaths, signal: AbortSignal, work: () => Promise<void>): Promise<void>;
}
