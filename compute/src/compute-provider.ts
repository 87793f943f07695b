/** Where machines come from. Every call is idempotent by machine id; a call that timed out may have worked. */
export interface ComputeProvider {
  readonly name: string;
  /** Makes the machine if it is not there: directory or disk, address, limits. It is not started. */
  create(spec: MachineSpec, signal: AbortSignal): Promise<MachineFacts>;
  /** Starts it with a fresh enrollment. One that runs already goes on, and finds the enrollment when it wants one. */
  start(machineId: string, enrollment: Enrollment, signal: AbortSignal): Promise<void>;
  /** Stops it within graceMs, then by force. It resolves when nothing of it runs. */
  stop(machineId: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /** Changes CPU and memory, and lets the root grow, never shrink; acts at the next start where the host cannot do it live. */
  resize(machineId: string, plan: MachinePlan, signal: AbortSignal): Promise<void>;
  /**
   * Puts this image under the data disk, of the engine's version that the machine has or of another one; acts at the next start,
   * whoever asks for it. Throws ComputeFailure for an image that is not there.
   */
  replaceImage(machineId: string, image: string, signal: AbortSignal): Promise<void>;
  /** Grows the data disk online. Smaller than now: throws. */
  growDisk(machineId: string, diskBytes: number, signal: AbortSignal): Promise<void>;
  /** Stops it and removes all of it, data included. Nothing happens when it is gone. */
  destroy(machineId: string, signal: AbortSignal): Promise<void>;
  /** Every machine of this installation that the host knows, owned or not. */
  list(signal: AbortSignal): Promise<MachineFacts[]>;
  get(machineId: string, signal: AbortSignal): Promise<MachineFacts | undefined>;
  /** Stops at once and answers only when the host itself reports it stopped after the order. */
  fence(machineId: string, signal: AbortSignal): Promise<void>;
  /** Calls back with the id of each machine that started, stopped or died; a hint, never the truth. */
  watch(onChange: (machineId: string) => void): { close(): void };
  /** Can the host take a machine of this size now? A refusal has the figure. */
  admit(spec: MachineSpec, signal: AbortSignal): Promise<Admission>;
  /** Engine versions that can run here; a missing one says why. Beside them the kernel that new virtual machines boot from. */
  images(signal: AbortSignal): Promise<ImageFacts[]>;
  /** Where machines have networks of their own: who may reach them. Absent where only engines can tell. */
  readonly edge?: MachineEdge;
  /** Copies of data disks as they were. Absent where there are none whatever the disk; a host may have them for some disks. */
  readonly snapshots?: MachineSnapshots;
  /** Kernels of virtual machines. Absent where there are none. */
  readonly guestKernels?: GuestKernels;
  /** Where machines have networks of their own: the way to those of other hosts. Absent where there is none to keep. */
  readonly paths?: HostPaths;
}

/** The way from a host to the machines of others. */
export interface HostPaths {
  /** Keeps a way to each of these, and to no other that was kept before; answers for each whether it is there. */
  keep(neighbours: readonly Neighbour[], signal: AbortSignal): Promise<HostPath[]>;
}

/** Another host, as the one that is to reach its machines sees it. */
export interface Neighbour {
  readonly hostId: string;
  /** Of all its machines, such as `10.78.0.0/16`; its own address there ends in `.0.1`. */
  readonly network: string;
  /** Address or name of the host itself. */
  readonly address: string;
}

export interface HostPath {
  readonly hostId: string;
  /** Why its machines are not reached, for operators; empty when they are. */
  readonly problem: string;
}

/**
 * A data disk as it was, beside the disk and of the same space until either changes. Only of machines that do not run, and
 * for as long as there is the machine. Each throws ComputeFailure with the reason where it cannot be done.
 */
export interface MachineSnapshots {
  /**
   * Takes one under this name, if there is none. `starts` is how often the machine was started by what the caller knows
   * (MachineFacts): once it was started again the caller's order is late, and refused.
   */
  take(machineId: string, name: string, starts: number, signal: AbortSignal): Promise<void>;
  /** Puts the data back as the snapshot has them, all or nothing. What was written since is gone. The snapshot stays. */
  restore(machineId: string, name: string, starts: number, signal: AbortSignal): Promise<void>;
  /** Nothing happens when it is gone. */
  remove(machineId: string, name: string, signal: AbortSignal): Promise<void>;
}

/** What virtual machines boot from, each from its own. */
export interface GuestKernels {
  /**
   * Has the machine boot from this one; acts at the next start, whoever asks for it. Throws ComputeFailure for a kernel that is
   * not there, and for a machine that has none of its own.
   */
  replace(machineId: string, kernel: string, signal: AbortSignal): Promise<void>;
}

/** Rules at the edge of all machines of a provider. What no rule allows is denied. */
export interface MachineEdge {
  /** Puts these in the place of all that were there, as one. */
  apply(rules: readonly ReachRule[], signal: AbortSignal): Promise<void>;
}

/** Lets these networks open connections to a machine; or machines to a controller, where `to` is that one's address. */
export interface ReachRule {
  /** The object that the rule belongs to, and goes with. */
  readonly owner: { readonly kind: string; readonly id: string };
  /** Address of the machine, or of the controller. */
  readonly to: string;
  /** TCP port; null for all that the machine serves. */
  readonly port: number | null;
  /** CIDRs of either family. */
  readonly from: readonly string[];
}

export interface MachinePlan {
  readonly vcpu: number;
  readonly memoryBytes: number;
  /**
   * The most that the machine's root may hold: the image, and what is written outside of its data disk. Absent from what was
   * asked for before plans said so (`rootBytesOf`), and from the facts of machines that have no root of their own.
   */
  readonly rootBytes?: number;
}

/** What every root was before plans said how large it is. */
const firstRootBytes = 4 * 1024 ** 3;

/** How large the root of a machine with this plan is to be. */
export function rootBytesOf({ rootBytes = firstRootBytes }: Pick<MachinePlan, "rootBytes">): number {
  return rootBytes;
}

/** What a machine is to its host: a container shares the host's kernel, a virtual machine has one of its own. */
export type InstanceKind = "container" | "virtual_machine";

export interface MachineSpec {
  readonly id: string;
  /** A container when absent. */
  readonly kind?: InstanceKind;
  /** The host that it was placed on; for a provider of many hosts. */
  readonly hostId?: string;
  readonly installationId: string;
  readonly plan: MachinePlan;
  readonly diskBytes: number;
  readonly zone: string;
  /** Decides where data disk and root are. A tier that the host has not is refused. */
  readonly storageTier: string;
  /** Engine and version decide the image: `postgresql` `17`. */
  readonly engine: string;
  readonly version: string;
  /** Id of the image, such as `trixie-3f2a9c0d51e78b64`; absent: the newest that is made with engine and version. */
  readonly image?: string;
  /** Id of the kernel of a virtual machine, such as `guest-3f2a9c0d51e78b64`; absent: the newest. */
  readonly guestKernel?: string;
  /**
   * Made before anybody wants it: it takes only what the host can spare, and may be refused or delayed (ComputePending) where
   * one that is wanted would not be.
   */
  readonly ahead?: boolean;
}

export interface MachineFacts {
  readonly id: string;
  readonly state: "stopped" | "running";
  /** Private address: peers, controllers and other machines of the platform reach it by this one; empty while it is half made. */
  readonly address: string;
  /** That clients elsewhere reach it by; the private one where it has no other. */
  readonly publicAddress: string;
  readonly diskBytes: number;
  /** CPU, memory and root that it has, or has from its next start on. */
  readonly plan: MachinePlan;
  /** Id of the image that it runs from, or runs from at its next start; empty where engines of the host run. */
  readonly image: string;
  /** Id of the kernel that it boots from, or boots from at its next start; absent for one that has none of its own. */
  readonly guestKernel?: string;
  /** False only when no engine can ever have written there. */
  readonly hasData: boolean;
  /** Raised by one for each start, so that a restart is seen. */
  readonly starts: number;
  /** Names of the snapshots of its data disk. */
  readonly snapshots: readonly string[];
}

/** What a machine needs to get its first certificate. Written to a file that only it can read. */
export interface Enrollment {
  readonly installationId: string;
  /** host:port of every controller. */
  readonly controllers: readonly string[];
  /** SHA-256 of the authority's certificate in DER, hex. */
  readonly caFingerprint: string;
  readonly token: string;
}

export type Admission = { readonly admitted: true } | { readonly admitted: false; readonly reason: string };

/**
 * What virtual machines boot from is told among images, beside those of engines, under these names: it is offered, replaced and
 * rolled back as they are.
 */
export const guestLine = { engine: "linux", version: "guest" } as const;

export interface ImageFacts {
  readonly engine: string;
  readonly version: string;
  readonly available: boolean;
  readonly reason?: string;
  /** Id of the newest image with it; absent while there is none, and where engines of the host run. */
  readonly image?: string;
  /** The engine's full version in that image, such as `17.11`. */
  readonly engineVersion?: string;
  /** When that image was made first, on whichever host; milliseconds since 1970. */
  readonly madeAt?: number;
  /** Versions of the libraries in that image that order texts, by their names: `libc`, `ICU`. */
  readonly textLibraries?: Readonly<Record<string, string>>;
}
