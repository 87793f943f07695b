import { guestKernelSeries } from "@holdfast/compute/compute-provider.ts";
import { addressNetworkOf, overlap } from "@holdfast/compute/local/address-network.ts";
import type { MachineObject, MachineSpecObject } from "../machine/machine.ts";
import { type HostObject, acceptsMachines } from "../host/host.ts";
import { hasImage, imageOf, newestImageOn } from "../host/host-images.ts";
import {
  hasSameOwner,
  memoryRefusal,
  type Reservations,
  reservationsOn,
  type CapacityRequest,
} from "./host-reservations.ts";
import { firstRefusal, freeSpaceRefusal, reservationRefusal, rootProblem } from "./storage-shares.ts";

/** Requirements of a machine on its host. */
export interface PlacementRequest
  extends CapacityRequest,
    Pick<MachineSpecObject, "kind" | "software" | "image" | "guestKernel" | "zone" | "apart"> {
  /** True if the machine exists on the host, with its root and its addresses. */
  readonly isCreated?: boolean;
}

/**
 * The chosen host with the node image (empty if the host has none yet) and the kernel of a virtual machine; or the
 * reason why no host can take the machine: sentences for users, with figures.
 */
export type PlacementChoice =
  | { readonly hostId: string; readonly image: string; readonly guestKernel?: string; readonly reason?: never }
  | { readonly hostId?: never; readonly reason: string };

/** Name and version of the kernel of virtual machines in the list of images. */
const guestSoftware = { name: guestKernelSeries.engine, version: guestKernelSeries.version };

/** Maximum number of hosts in a refusal. */
const namedRefusalsMax = 10;

/**
 * Chooses the host of a machine. Candidates are hosts of its zone that are ready, accept machines, have its storage
 * tier, its software, the image of the owner's other machines, and capacity. Of these it chooses the host with the
 * fewest machines of the owner, then the host with the largest free share. Reservations count whether or not their
 * machines are created. Reservations of the warm pool do not count against machines with an owner.
 */
export function placeMachine(
  initial: PlacementRequest,
  hosts: Iterable<HostObject>,
  machines: readonly MachineObject[],
): PlacementChoice {
  const request = { ...initial, image: imageFor(initial, machines), guestKernel: guestKernelFor(initial, machines) };
  const all = [...hosts];
  const inZone = all.filter(({ spec }) => spec.zone === request.zone && spec.destroyedAt === null);
  if (inZone.length === 0) return { reason: `No host is in zone ${request.zone}.` };
  const here = Map.groupBy(machines, ({ spec }) => spec.hostId);
  const overlapping = overlappingBlocks(all);
  const refusals: string[] = [];
  const candidates = inZone.flatMap((host) => {
    const { id } = host.metadata;
    const reservations = reservationsOn(host, request, here.get(id) ?? []);
    const refusal = overlapping.get(id) ?? refusalOf(request, host, reservations);
    if (refusal === undefined)
      return [{ id, host, sameOwnerCount: reservations.sameOwnerCount, ...freeSharesOf(request, host, reservations) }];
    refusals.push(`${id}: ${refusal}`);
    return [];
  });
  candidates.sort(
    (a, b) => a.sameOwnerCount - b.sameOwnerCount || b.smallest - a.smallest || b.sum - a.sum || (a.id < b.id ? -1 : 1),
  );
  const [best] = candidates;
  // The image is chosen here and not at creation, so that the next machine of the owner gets the same one.
  if (best !== undefined) {
    const { host } = best;
    const image = request.image || newestImageOn(host, request.software);
    const guestKernel = request.guestKernel || newestImageOn(host, guestSoftware);
    return { hostId: best.id, image, ...(request.kind === "virtual_machine" && guestKernel !== "" && { guestKernel }) };
  }
  const more = refusals.length > namedRefusalsMax ? ` And ${refusals.length - namedRefusalsMax} more.` : "";
  return {
    reason: `No host of zone ${request.zone} can take it. ${refusals.slice(0, namedRefusalsMax).join(" ")}${more}`,
  };
}

/** The image of the request, or of the owner's other machines; empty if any image can be used. */
export function imageFor(request: PlacementRequest, machines: Iterable<MachineObject>): string {
  return sharedWithPeers(request, machines, ({ image }) => image);
}

/** The kernel of the request, or of the owner's other virtual machines; empty if any kernel can be used. */
function guestKernelFor(request: PlacementRequest, machines: Iterable<MachineObject>): string {
  const of = ({ guestKernel = "" }: Pick<MachineSpecObject, "guestKernel">) => guestKernel;
  return request.kind === "virtual_machine" ? sharedWithPeers(request, machines, of) : of(request);
}

/**
 * A property that all machines of an owner share: the value of the request, or of the owner's first machine that has
 * one.
 */
function sharedWithPeers(
  request: PlacementRequest,
  machines: Iterable<MachineObject>,
  of: (machine: Pick<MachineSpecObject, "image" | "guestKernel">) => string,
): string {
  const requested = of(request);
  if (requested !== "" || request.owner === null) return requested;
  for (const { metadata, spec } of machines)
    if (of(spec) !== "" && metadata.id !== request.id && hasSameOwner(spec, request)) return of(spec);
  return "";
}

/** The reason why this host, in any zone, cannot take the machine; undefined if it can. */
export function refusalOn(
  request: PlacementRequest,
  host: HostObject,
  machines: Iterable<MachineObject>,
): string | undefined {
  return refusalOf(request, host, reservationsOn(host, request, machines));
}

type Check = (request: PlacementRequest, host: HostObject, reservations: Reservations) => string | undefined;

/** Checks of a host, in order. The first check that refuses gives the reason. */
const checks: readonly Check[] = [
  (_, host) =>
    acceptsMachines(host) ? undefined : host.spec.drain === null ? "it is cordoned." : "it is being drained.",
  (_, { status }) =>
    status.state === "ready" && status.facts !== null ? undefined : `it is ${status.state}: ${status.reason}`,
  ({ software }, host) => {
    const image = imageOf(host, software);
    if (image?.available === true) return undefined;
    return `it has no ${software.name} ${software.version}${image?.reason === undefined ? "." : `: ${image.reason}`}`;
  },
  ({ image }, host) => {
    if (image === "" || hasImage(host, image)) return undefined;
    return `it does not have the node image ${image} of the other members.`;
  },
  ({ guestKernel = "" }, host) => {
    if (guestKernel === "" || hasImage(host, guestKernel)) return undefined;
    return `it does not have the kernel ${guestKernel} of the other members.`;
  },
  ({ storageTier }, { status: { facts } }) => {
    const tiers = facts?.tiers ?? [];
    if (tiers.length === 0 || tiers.some(({ name }) => name === storageTier)) return undefined;
    return `it has no storage of tier ${storageTier}, only ${tiers.map(({ name }) => name).join(", ")}.`;
  },
  ({ kind = "container" }, { status: { facts } }) => {
    const refusal = facts?.virtualMachineProblem ?? "its host program is too old for virtual machines: upgrade it.";
    return kind === "container" || refusal === "" ? undefined : refusal;
  },
  ({ apart }, _, { sameOwnerCount }) =>
    apart === "required" && sameOwnerCount > 0
      ? `it has ${sameOwnerCount} other members, which must be on other hosts.`
      : undefined,
  publicAddressRefusal,
  memoryRefusal,
  rootProblem,
  (_, host, { storages }) => firstRefusal(storages, (share) => reservationRefusal(share, host)),
  ({ isCreated = false }, _, { storages, uncreated }) => {
    // The root of an existing machine is already on the host: only its data disk grows.
    const written = isCreated ? storages.filter(({ data }) => data) : storages;
    return firstRefusal(written, (share) => freeSpaceRefusal(share, uncreated));
  },
];

function refusalOf(request: PlacementRequest, host: HostObject, reservations: Reservations): string | undefined {
  for (const check of checks) {
    const refusal = check(request, host, reservations);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function publicAddressRefusal(
  { isCreated = false }: PlacementRequest,
  { status: { facts } }: HostObject,
  { uncreated }: Reservations,
): string | undefined {
  const { publicBlock = "", publicTotal = 0, publicFree = 0 } = facts ?? {};
  if (isCreated || publicBlock === "" || publicFree > uncreated) return undefined;
  return `${publicTotal - publicFree + uncreated} of the ${publicTotal} addresses of ${publicBlock} are taken.`;
}

/**
 * Free shares of the host with the machine on it: the smallest of memory and storages, and their sum. May be negative.
 */
function freeSharesOf(
  request: PlacementRequest,
  host: HostObject,
  reservations: Reservations,
): { smallest: number; sum: number } {
  const memoryTotal = (host.status.facts?.memoryTotalBytes ?? 0) * (host.spec.memoryOvercommit ?? 1);
  const memoryShare = 1 - (reservations.memoryBytes + request.memoryBytes) / memoryTotal;
  const diskShare = Math.min(
    ...reservations.storages.map(
      ({ freeBytes, totalBytes, firstBytes }) => (freeBytes - (reservations.uncreated + 1) * firstBytes) / totalBytes,
    ),
  );
  return { smallest: Math.min(memoryShare, diskShare), sum: memoryShare + diskShare };
}

/** Hosts whose public address blocks overlap, by id, with the reason. None of them may assign addresses. */
function overlappingBlocks(hosts: readonly HostObject[]): ReadonlyMap<string, string> {
  const blocks = hosts.flatMap(({ metadata: { id }, spec, status }) => {
    const text = status.facts?.publicBlock ?? "";
    return text === "" || spec.destroyedAt !== null ? [] : [{ id, network: addressNetworkOf(text) }];
  });
  const overlapping = new Map<string, string>();
  for (const { id, network } of blocks) {
    const other = blocks.find((each) => each.id !== id && overlap(each.network, network));
    if (other !== undefined)
      overlapping.set(id, `its public addresses ${network.text} overlap the public addresses of host ${other.id}.`);
  }
  return overlapping;
}
