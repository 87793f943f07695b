import type { NodeImage } from "@holdfast/image/node-image.ts";
import type { Enrollment, MachinePlan } from "../compute-provider.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import type { MachineRecord } from "../local/machine-record.ts";
import type { InstanceFacts } from "./instance-config.ts";
import type { Instance } from "./instance-power.ts";

/** Machines of one kind, as instances: what they are made from and how they have their disks. All else is the same for each. */
export interface InstanceForm {
  /** Makes what is missing of what they are made from, such as the import of an image (seconds). */
  ensure(image: NodeImage, signal: AbortSignal): Promise<void>;
  /**
   * Id of the kernel that a machine boots from, made first where it is missing (a minute): the one that was chosen, else the newest.
   * Undefined where machines have none of their own.
   */
  kernelFor(chosen: string | undefined, signal: AbortSignal): Promise<string | undefined>;
  /** Has the machine's disks ready for an instance to be made or started with them; the record says what was done. */
  openDisks(paths: MachinePaths, record: MachineRecord): Promise<MachineRecord>;
  /** The body of `POST /1.0/instances`. */
  describe(facts: InstanceFacts, image: NodeImage, signal: AbortSignal): Promise<{ readonly name: string }>;
  /** Makes a stopped instance what it is to be from its next start on: code of today, and image and kernel of its facts. */
  refresh(instance: Instance, facts: InstanceFacts, image: () => NodeImage, signal: AbortSignal): Promise<void>;
  /** Leaves the machine a fresh enrollment; one that runs finds it as well. */
  enroll(paths: MachinePaths, machineId: string, enrollment: Enrollment): Promise<void>;
  /** CPU, memory and root: now, or at the next start where a running one cannot change. */
  resize(plan: MachinePlan, instance: Instance, signal: AbortSignal): Promise<void>;
  /** Makes the data disk this large, online when the instance runs. */
  growDisk(instance: Instance | undefined, paths: MachinePaths, diskBytes: number): Promise<void>;
  /** Does it while nobody has the data disk of a stopped machine open. */
  whileClosed(paths: MachinePaths, signal: AbortSignal, work: () => Promise<void>): Promise<void>;
}
