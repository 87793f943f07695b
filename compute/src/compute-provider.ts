/**
 * A compute provider: creates machines on a host and controls them.
 *
 * The process provider (process/) and the Incus provider (incus/) run on a host; `remote/` calls the provider of
 * another host, and `router/` sends each call to the host of its machine. Every call is idempotent by machine id. A
 * call that timed out may have taken effect. compute-conformance.ts is the suite that every provider passes.
 */
export interface ComputeProvider {
  readonly name: string;
  /** Creates the machine if it does not exist: directory or disk, address, limits. Does not start it. */
  create(spec: MachineSpec, signal: AbortSignal): Promise<MachineFacts>;
  /**
   * Starts the machine with a new enrollment. A running machine continues, and finds the enrollment when it needs one.
   */
  start(machineId: string, enrollment: Enrollment, signal: AbortSignal): Promise<void>;
  /** Stops the machine within graceMs, then by force. Resolves when no process of it remains. */
  stop(machineId: string, graceMs: number, signal: AbortSignal): Promise<void>;
  /**
   * Changes CPU and memory, and grows the root (never shrinks it); takes effect at the next start if the host cannot
   * change it live.
   */
  resize(machineId: string, plan: MachinePlan, signal: AbortSignal): Promise<void>;
  /**
   * Replaces the image under the data disk, by one with the same or another version of the engine; takes effect at the
   * next start. Throws ComputeFailure for an image that is not on the host.
   */
  replaceImage(machineId: string, image: string, signal: AbortSignal): Promise<void>;
  /** Grows the data disk online. Throws for a size below the current one. */
  growDisk(machineId: string, diskBytes: number, signal: AbortSignal): Promise<void>;
  /** Stops the machine and removes it with its data. Does nothing if it does not exist. */
  destroy(machineId: string, signal: AbortSignal): Promise<void>;
  /** Every machine of this installation on the host, with or without an owner. */
  list(signal: AbortSignal): Promise<MachineFacts[]>;
  get(machineId: string, signal: AbortSignal): Promise<MachineFacts | undefined>;
  /** Stops the machine by force; resolves only when the host reports it stopped after the request. */
  fence(machineId: string, signal: AbortSignal): Promise<void>;
  /** Calls `onChange` with the id of each machine that may have started or ended. `get` has its current state. */
  watch(onChange: (machineId: string) => void): { close(): void };
  /** Tests whether the host can take a machine of this size now. A refusal has the figures. */
  admit(spec: MachineSpec, signal: AbortSignal): Promise<Admission>;
  /** Engine versions that can run here, with a reason for each that cannot, and the kernel of new virtual machines. */
  images(signal: AbortSignal): Promise<ImageFacts[]>;
  /**
   * Packet filter of the machines; absent if machines share the host's network, so that only engines check addresses.
   */
  readonly edge?: MachineEdge;
  /** Snapshots of data disks; absent if the provider has none. A host may support them for some disks only. */
  readonly snapshots?: MachineSnapshots;
  /** Kernels of virtual machines; absent if the provider has no virtual machines. */
  readonly guestKernels?: GuestKernels;
  /** Routes to the machines of other hosts; absent if machines share the host's network. */
  readonly routes?: HostRoutes;
}

/** Routes from a host to the machines of other hosts. */
export interface HostRoutes {
  /**
   * Sets a route to each of these hosts and removes the other routes that it set before; reports for each whether its
   * machines respond.
   */
  apply(others: readonly OtherHost[], signal: AbortSignal): Promise<HostRoute[]>;
}

/** Another host, as seen by the host that routes to its machines. */
export interface OtherHost {
  readonly hostId: string;
  /** Network of all its machines, such as `10.78.0.0/16`; the host's own address in it ends in `.0.1`. */
  readonly network: string;
  /** Address or name of the host. */
  readonly address: string;
}

export interface HostRoute {
  readonly hostId: string;
  /** Reason why its machines cannot be reached, for operators; empty when they can. */
  readonly problem: string;
}

/**
 * Snapshots of data disks. A snapshot is in the directory of its disk, shares the disk's blocks until either changes,
 * and is removed with its machine. Only a stopped machine's disk is copied or restored. Each method throws
 * ComputeFailure with the reason if it is impossible.
 */
export interface MachineSnapshots {
  /**
   * Takes a snapshot of this name unless it exists. `starts` is the machine's start counter as the caller read it
   * (MachineFacts): after another start the request is stale, and refused.
   */
  take(machineId: string, name: string, starts: number, signal: AbortSignal): Promise<void>;
  /** Restores the data from the snapshot, all or nothing. Later writes are lost; the snapshot remains. */
  restore(machineId: string, name: string, starts: number, signal: AbortSignal): Promise<void>;
  /** Removes the snapshot, if it exists. */
  remove(machineId: string, name: string, signal: AbortSignal): Promise<void>;
}

/** Kernels of virtual machines; each machine boots from its own choice. */
export interface GuestKernels {
  /**
   * Selects the kernel that the machine boots from at its next start. Throws ComputeFailure for a kernel that is not on
   * the host, and for a container, which shares the host's kernel.
   */
  replace(machineId: string, kernel: string, signal: AbortSignal): Promise<void>;
}

/** Packet filter at the edge of all machines of a provider. Traffic without a rule is denied. */
export interface MachineEdge {
  /** Replaces all rules in one step. */
  apply(rules: readonly PolicyRule[], signal: AbortSignal): Promise<void>;
}

/** Admits connections from these networks to a machine, or from machines to a controller, whose address is `to`. */
export interface PolicyRule {
  /** The object that the rule belongs to; the rule is removed with it. */
  readonly owner: { readonly kind: string; readonly id: string };
  /** Address of the machine or controller. */
  readonly to: string;
  /** TCP port; null for every port of the machine. */
  readonly port: number | null;
  /** CIDRs, IPv4 or IPv6. */
  readonly from: readonly string[];
}

export interface MachinePlan {
  readonly vcpu: number;
  readonly memoryBytes: number;
  /**
   * Size limit of the machine's root: the image, and writes outside of the data disk. Absent in plans of earlier
   * releases (`rootBytesOf`), and in facts of machines without a root.
   */
  readonly rootBytes?: number;
}

/** Root size of plans without one. */
const firstRootBytes = 4 * 1024 ** 3;

/** Root size of a machine with this plan, bytes. */
export function rootBytesOf({ rootBytes = firstRootBytes }: Pick<MachinePlan, "rootBytes">): number {
  return rootBytes;
}

/** A container shares the host's kernel, a virtual machine has its own. */
export type InstanceKind = "container" | "virtual_machine";

export interface MachineSpec {
  readonly id: string;
  /** Container if absent. */
  readonly kind?: InstanceKind;
  /** The host that the machine is placed on; for providers of several hosts. */
  readonly hostId?: string;
  readonly installationId: string;
  readonly plan: MachinePlan;
  readonly diskBytes: number;
  readonly zone: string;
  /** Decides the location of data disk and root. A tier that the host does not have is refused. */
  readonly storageTier: string;
  /** Engine and version select the image, such as `postgresql` and `17`. */
  readonly engine: string;
  readonly version: string;
  /** Image id, such as `trixie-3f2a9c0d51e78b64`; absent: the newest with engine and version. */
  readonly image?: string;
  /** Kernel id of a virtual machine, such as `guest-3f2a9c0d51e78b64`; absent: the newest. */
  readonly guestKernel?: string;
  /**
   * True for a machine of the warm pool: it uses only spare capacity, and may be refused or delayed (ComputePending)
   * where a requested machine would not be.
   */
  readonly ahead?: boolean;
}

export interface MachineFacts {
  readonly id: string;
  readonly state: "stopped" | "running";
  /**
   * Private address, for peers, controllers and other machines of the platform; empty while the machine is incomplete.
   */
  readonly address: string;
  /** Address for clients outside of the platform; the private one if the machine has no other. */
  readonly publicAddress: string;
  readonly diskBytes: number;
  /** CPU, memory and root, as of now or of the next start. */
  readonly plan: MachinePlan;
  /** Image id, as of now or of the next start; empty for engines that the host has installed. */
  readonly image: string;
  /** Kernel id, as of now or of the next start; absent for machines that share the host's kernel. */
  readonly guestKernel?: string;
  /** False only if no engine can ever have written data. */
  readonly hasData: boolean;
  /** Counter of starts, so that a restart is visible. */
  readonly starts: number;
  /** Names of the data disk's snapshots. */
  readonly snapshots: readonly string[];
}

/** Input of a machine's first certificate request; written to a file that only the machine can read. */
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
 * Engine and version under which the kernel of virtual machines is listed among images: it is offered, replaced and
 * rolled back in the same way.
 */
export const guestKernelSeries = { engine: "linux", version: "guest" } as const;

export interface ImageFacts {
  readonly engine: string;
  readonly version: string;
  readonly available: boolean;
  readonly reason?: string;
  /**
   * Id of the newest image with this version; absent if there is none yet, and for engines that the host has installed.
   */
  readonly image?: string;
  /** Full version of the engine in that image, such as `17.11`. */
  readonly engineVersion?: string;
  /** Time of the image's first build on any host, in milliseconds since 1970. */
  readonly madeAt?: number;
  /** Versions of the image's collation libraries by name: `libc`, `ICU`. */
  readonly textLibraries?: Readonly<Record<string, string>>;
  /** Plugins of the engine that the operator adds to images of this version, by name; absent without any. */
  readonly plugins?: readonly string[];
}

/**
 * Engine versions of all hosts. A version is available if one host has it; otherwise the first reason counts. Its
 * plugins are those that all hosts with the version have: a service may be placed on any of them. Image ids are
 * omitted, because they differ between hosts.
 */
export function unionOf(all: Iterable<ImageFacts>): ImageFacts[] {
  const union = new Map<string, ImageFacts>();
  for (const { engine, version, available, reason, plugins = [] } of all) {
    const key = `${engine} ${version}`;
    const found = union.get(key);
    const here = { engine, version, available, ...(reason !== undefined && { reason }) };
    if (found === undefined || (!found.available && available))
      union.set(key, { ...here, ...(plugins.length > 0 && { plugins }) });
    else if (available && found.plugins !== undefined)
      union.set(key, { ...found, plugins: found.plugins.filter((name) => plugins.includes(name)) });
  }
  return [...union.values()];
}
