import type { HostRoute, ImageFacts } from "@holdfast/compute/compute-provider.ts";
import type { HostFacts } from "@holdfast/compute/local/host-facts.ts";
import type { EnrolledStatus } from "#kernel/pki/enrollment.ts";
import { newMetadata, nextMetadata, type Resource } from "#kernel/store/resource.ts";
import type { HostDrainState, HostState } from "./host-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** A computer that has machines. Its id is the name that an operator chose; the host's certificate contains it. */
export type HostObject = Resource<HostSpec, HostStatus>;

export const hostKind = defineKind<HostObject>("host", {
  storedNames: {
    "spec.drain.requestedAt": "askedAt",
    "status.drain.remaining": "left",
    "status.drain.waitsFor.*.ownerId": "serviceId",
    "status.facts.virtualMachineProblem": "noVirtualMachines",
    "status.facts.tiers.*.snapshotProblem": "noSnapshots",
  },
});

export interface HostSpec {
  readonly zone: string;
  /** host:port that controllers dial; empty for the controllers' own host, which needs no connection. */
  readonly address: string;
  /** True: no new machines are placed on it, not even for the warm pool. */
  readonly cordoned: boolean;
  /** The requested drain, until the host is uncordoned. A host with a drain is cordoned. */
  readonly drain: {
    readonly requestedAt: number;
    /** True: services with a single node here are stopped until the drain ends. */
    readonly stopSingleNodes: boolean;
  } | null;
  /** Time at which an operator declared the host destroyed with its data, in milliseconds since 1970. */
  readonly destroyedAt: number | null;
  /** Reservable memory as a multiple of the total; null: no limit but free memory. */
  readonly memoryOvercommit: number | null;
  /** Reservable disk as a multiple of the total; null: no limit but free space. */
  readonly diskOvercommit: number | null;
}

/** Status of a host. The token of its enrollment is in its join file. */
export interface HostStatus extends EnrolledStatus {
  readonly state: HostState;
  /** Time at which the state began, in milliseconds since 1970. */
  readonly since: number;
  /** Reason why it is not ready. */
  readonly reason: string;
  /** The last reported facts, without immaterial changes; null before the first report. */
  readonly facts: HostFacts | null;
  readonly images: readonly ImageFacts[];
  /** Time since which each image is the newest of its engine and version, by image id, in milliseconds since 1970. */
  readonly imageSince?: Readonly<Record<string, number>>;
  /** Number of reservations ever made on it. Each raises it, so one of two concurrent reservations gets a Conflict. */
  readonly placements: number;
  readonly drain: HostDrainStatus;
  /** Hosts whose machines cannot be reached from this host; absent before the first check. */
  readonly missingPaths?: readonly HostRoute[];
}

export interface HostDrainStatus {
  readonly state: HostDrainState;
  readonly since: number;
  /** Number of machines on the host when the drain began. */
  readonly machines: number;
  /** Number of machines that still run, or wait in the warm pool. */
  readonly remaining: number;
  /**
   * Owners of the machines that the drain waits for, at most a hundred. Without a kind it was written before owners had
   * kinds, and the next pass of the drain replaces it.
   */
  readonly waitsFor: readonly { readonly ownerKind?: string; readonly ownerId: string; readonly reason: string }[];
}

const noDrain: HostDrainStatus = { state: "none", since: 0, machines: 0, remaining: 0, waitsFor: [] };

/** A host that has not connected yet. */
export function newHost(
  id: string,
  spec: Pick<HostSpec, "zone" | "address" | "memoryOvercommit" | "diskOvercommit">,
  now: number,
): HostObject {
  return {
    metadata: newMetadata(id, now),
    spec: { ...spec, cordoned: false, drain: null, destroyedAt: null },
    status: {
      state: "joining",
      since: now,
      reason: "The host has not connected yet.",
      facts: null,
      images: [],
      placements: 0,
      drain: noDrain,
      enrollment: null,
      certificate: null,
    },
  };
}

/** The host with a changed spec, and the next generation. */
export function withHostSpec(host: HostObject, change: Partial<HostSpec>, now: number): HostObject {
  const metadata = nextMetadata(host.metadata, now);
  return { ...host, metadata, spec: { ...host.spec, ...change } };
}

/** The host with one more reservation. A placement that was computed without it gets a Conflict. */
export function withReservation(host: HostObject): HostObject {
  return { ...host, status: { ...host.status, placements: host.status.placements + 1 } };
}

/** True if reservations on the host are limited; otherwise only free memory and disk count. */
export function hasReservationLimit({ spec }: HostObject): boolean {
  return spec.memoryOvercommit !== null || spec.diskOvercommit !== null;
}

/** True if the host was declared destroyed or is being deleted: controllers no longer dial or trust it. */
export function isRemoved({ metadata, spec }: HostObject): boolean {
  return spec.destroyedAt !== null || metadata.deletionRequestedAt !== undefined;
}

/** True if operators allow new machines on the host. */
export function acceptsMachines(host: HostObject): boolean {
  return !host.spec.cordoned && !isRemoved(host);
}

/** True if the host does not respond and may return. */
export function isUnreachable({ spec, status }: HostObject): boolean {
  return spec.destroyedAt === null && status.state === "unreachable";
}

/** True if nodes on the host are to be replaced on other hosts. */
export function evictsNodes({ spec }: HostObject): boolean {
  return spec.drain !== null || spec.destroyedAt !== null;
}

/** True if services with a single node on the host are stopped until the drain ends. */
export function stopsSingleNodes({ spec }: HostObject): boolean {
  return spec.drain?.stopSingleNodes === true;
}
