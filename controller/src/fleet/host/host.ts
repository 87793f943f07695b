import type { HostPath, ImageFacts } from "@holdfast/compute/compute-provider.ts";
import type { HostFacts } from "@holdfast/compute/local/host-facts.ts";
import type { EnrolledStatus } from "#kernel/pki/enrolled-status.ts";
import { newMetadata, nextMetadata, type Resource } from "#kernel/store/resource.ts";
import type { HostDrainState, HostState } from "./host-lifecycle.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** A host that machines are on. Its id is the name that its operator gave it; it is in its certificate. */
export type HostObject = Resource<HostSpec, HostStatus>;

export const hostKind = defineKind<HostObject>("host");

export interface HostSpec {
  readonly zone: string;
  /** host:port that controllers dial; empty for the controllers' own host, which they need not dial. */
  readonly address: string;
  /** Takes no new machines, waiting ones neither. */
  readonly cordoned: boolean;
  /** Asked to be emptied, and until it is uncordoned; a host that drains is cordoned. */
  readonly drain: {
    readonly askedAt: number;
    /** Services with one node may be stopped, and stay so for as long as the host drains. */
    readonly stopSingleNodes: boolean;
  } | null;
  /** When an operator said that it is gone for good, with all that was on it. */
  readonly destroyedAt: number | null;
  /** How many times its memory, and its disk, may be promised to machines; null where only what is free counts. */
  readonly memoryOvercommit: number | null;
  readonly diskOvercommit: number | null;
}

/** Its enrollment is by the token of its join file. */
export interface HostStatus extends EnrolledStatus {
  readonly state: HostState;
  /** When the state began. */
  readonly since: number;
  /** Why it is not ready. */
  readonly reason: string;
  /** What it told last; null before its first word. */
  readonly facts: HostFacts | null;
  readonly images: readonly ImageFacts[];
  /** Since when each of these images is the newest there, by its id; absent before anybody noted it. */
  readonly imageSince?: Readonly<Record<string, number>>;
  /** How many machines were ever promised on it: raised with each, so that of two at once one finds a Conflict. */
  readonly placements: number;
  readonly drain: HostDrainStatus;
  /** Other hosts whose machines are not reached from here; absent before anybody looked. */
  readonly missingPaths?: readonly HostPath[];
}

export interface HostDrainStatus {
  readonly state: HostDrainState;
  readonly since: number;
  /** Machines that were on it when the drain was asked for, and those that still run or wait. */
  readonly machines: number;
  readonly left: number;
  /** Services that stand in the way, at most a hundred, with what would move each. */
  readonly waitsFor: readonly { readonly serviceId: string; readonly reason: string }[];
}

const noDrain: HostDrainStatus = { state: "none", since: 0, machines: 0, left: 0, waitsFor: [] };

/** Pure: a host that was not heard of yet. */
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
      reason: "It has not been heard of yet.",
      facts: null,
      images: [],
      placements: 0,
      drain: noDrain,
      enrollment: null,
      certificate: null,
    },
  };
}

/** Pure: the host with this much of its spec changed. */
export function withHostSpec(host: HostObject, change: Partial<HostSpec>, now: number): HostObject {
  const metadata = nextMetadata(host.metadata, now);
  return { ...host, metadata, spec: { ...host.spec, ...change } };
}

/** Pure: the host with one machine more promised on it: a placement that counted without this one gets a Conflict. */
export function withPromise(host: HostObject): HostObject {
  return { ...host, status: { ...host.status, placements: host.status.placements + 1 } };
}

/** Is there an end to what may be promised on it, besides what is free? */
export function isBounded({ spec }: HostObject): boolean {
  return spec.memoryOvercommit !== null || spec.diskOvercommit !== null;
}

/** Is it to be dialled and trusted no more? */
export function isOut({ metadata, spec }: HostObject): boolean {
  return spec.destroyedAt !== null || metadata.deletionRequestedAt !== undefined;
}

/** May new machines be placed on it, as far as its operator is concerned? */
export function isOpen(host: HostObject): boolean {
  return !host.spec.cordoned && !isOut(host);
}

/** Does it not answer, and may be back? */
export function isSilent({ spec, status }: HostObject): boolean {
  return spec.destroyedAt === null && status.state === "unreachable";
}

/** Are services with other nodes to leave it? */
export function isLeft({ spec }: HostObject): boolean {
  return spec.drain !== null || spec.destroyedAt !== null;
}

/** Are services with one node on it held stopped now? */
export function holdsServices({ spec }: HostObject): boolean {
  return spec.drain?.stopSingleNodes === true;
}
