import { guestLine } from "@holdfast/compute/compute-provider.ts";
import type { MachineObject, MachineSpecObject } from "../machine/machine.ts";
import { type HostObject, isOpen } from "../host/host.ts";
import { hasImage, newestOn } from "../host/host-images.ts";
import { isPeer, memoryRefusal, type Promises, promisesOn, type WantedRoom } from "./host-promises.ts";
import { doubledBlocks } from "./public-blocks.ts";
import { firstRefusal, freeShareRefusal, promisedShareRefusal, rootProblem } from "./storage-shares.ts";

/** What a machine needs of its host. */
export interface Wanted
  extends WantedRoom,
    Pick<MachineSpecObject, "kind" | "engine" | "version" | "image" | "guestKernel" | "zone" | "apart"> {
  /** It is there already, with the addresses that it has. */
  readonly isMade?: boolean;
}

/**
 * The host that it is to be on, with the image that it is to have there (empty where the host has yet to make its first), and
 * the kernel of a virtual machine likewise, or why there is none: a sentence for users, with figures.
 */
export type PlaceChoice =
  | { readonly hostId: string; readonly image: string; readonly guestKernel?: string; readonly reason?: never }
  | { readonly hostId?: never; readonly reason: string };

/** So many hosts are told about in a refusal. */
const mostNamed = 10;

/**
 * Pure: where a machine is to be. Only hosts of its zone that answer, take machines, have its storage tier, its engine's
 * version and the image of the service's other members, and room for what it asks come into question; of those the one with the fewest members of the same service, then
 * the one that has the largest share left. What was promised counts, made or not; machines that nobody owns give way to
 * those that somebody wants.
 */
export function placeMachine(
  asked: Wanted,
  hosts: Iterable<HostObject>,
  machines: readonly MachineObject[],
): PlaceChoice {
  const wanted = { ...asked, image: imageFor(asked, machines), guestKernel: guestKernelFor(asked, machines) };
  const all = [...hosts];
  const near = all.filter(({ spec }) => spec.zone === wanted.zone && spec.destroyedAt === null);
  if (near.length === 0) return { reason: `No host is in zone ${wanted.zone}.` };
  const here = Map.groupBy(machines, ({ spec }) => spec.hostId);
  const doubled = doubledBlocks(all);
  const refusals: string[] = [];
  const fitting = near.flatMap((host) => {
    const { id } = host.metadata;
    const promises = promisesOn(host, wanted, here.get(id) ?? []);
    const refusal = doubled.get(id) ?? refusalOf(wanted, host, promises);
    if (refusal === undefined) return [{ id, host, peers: promises.peers, ...freeSharesOf(wanted, host, promises) }];
    refusals.push(`${id}: ${refusal}`);
    return [];
  });
  fitting.sort((a, b) => a.peers - b.peers || b.least - a.least || b.together - a.together || (a.id < b.id ? -1 : 1));
  const [best] = fitting;
  // Chosen now, and not when it is made: whoever is placed next for the same service keeps to it.
  if (best !== undefined) {
    const { host } = best;
    const image = wanted.image || newestOn(host, wanted.engine, wanted.version);
    const guestKernel = wanted.guestKernel || newestOn(host, guestLine.engine, guestLine.version);
    return { hostId: best.id, image, ...(wanted.kind === "virtual_machine" && guestKernel !== "" && { guestKernel }) };
  }
  const more = refusals.length > mostNamed ? ` And ${refusals.length - mostNamed} more.` : "";
  return { reason: `No host of zone ${wanted.zone} can take it. ${refusals.slice(0, mostNamed).join(" ")}${more}` };
}

/** Pure: the image that was chosen for it, or that the service's other members run from; empty when any will do. */
export function imageFor(wanted: Wanted, machines: Iterable<MachineObject>): string {
  return sharedWithPeers(wanted, machines, ({ image }) => image);
}

/** The same of the kernel of a virtual machine. */
function guestKernelFor(wanted: Wanted, machines: Iterable<MachineObject>): string {
  const of = ({ guestKernel = "" }: Pick<MachineSpecObject, "guestKernel">) => guestKernel;
  return wanted.kind === "virtual_machine" ? sharedWithPeers(wanted, machines, of) : of(wanted);
}

/** What all members of a service have the same of. */
function sharedWithPeers(
  wanted: Wanted,
  machines: Iterable<MachineObject>,
  of: (machine: Pick<MachineSpecObject, "image" | "guestKernel">) => string,
): string {
  const own = of(wanted);
  if (own !== "" || wanted.owner === null) return own;
  for (const { metadata, spec } of machines)
    if (of(spec) !== "" && metadata.id !== wanted.id && isPeer(spec, wanted)) return of(spec);
  return "";
}

/** Pure: why this host, of whichever zone, cannot take it; undefined when it can. */
export function refusalOn(wanted: Wanted, host: HostObject, machines: Iterable<MachineObject>): string | undefined {
  return refusalOf(wanted, host, promisesOn(host, wanted, machines));
}

type Check = (wanted: Wanted, host: HostObject, promises: Promises) => string | undefined;

/** In the order in which a refusal is told. */
const checks: readonly Check[] = [
  (_, host) => (isOpen(host) ? undefined : host.spec.drain === null ? "it is cordoned." : "it is being drained."),
  (_, { status }) =>
    status.state === "ready" && status.facts !== null ? undefined : `it is ${status.state}: ${status.reason}`,
  ({ engine, version }, { status }) => {
    const image = status.images.find((each) => each.engine === engine && each.version === version);
    if (image?.available === true) return undefined;
    return `it has no ${engine} ${version}${image?.reason === undefined ? "." : `: ${image.reason}`}`;
  },
  ({ image }, host) => {
    if (image === "" || hasImage(host, image)) return undefined;
    return `it has not the node image ${image}, from which all members of the service run.`;
  },
  ({ guestKernel = "" }, host) => {
    if (guestKernel === "" || hasImage(host, guestKernel)) return undefined;
    return `it has not the kernel ${guestKernel}, from which all virtual machines of the service boot.`;
  },
  ({ storageTier }, { status: { facts } }) => {
    const tiers = facts?.tiers ?? [];
    if (tiers.length === 0 || tiers.some(({ name }) => name === storageTier)) return undefined;
    return `it has no storage of tier ${storageTier}, only ${tiers.map(({ name }) => name).join(", ")}.`;
  },
  ({ kind = "container" }, { status: { facts } }) => {
    const refusal = facts?.noVirtualMachines ?? "its program is of a version that knows no virtual machines.";
    return kind === "container" || refusal === "" ? undefined : refusal;
  },
  ({ apart }, _, { peers }) =>
    apart === "required" && peers > 0 ? `${peers} other of the same service must be on other hosts.` : undefined,
  publicAddressRefusal,
  memoryRefusal,
  rootProblem,
  (_, host, { storages }) => firstRefusal(storages, (share) => promisedShareRefusal(share, host)),
  ({ isMade = false }, _, { storages, unmade }) => {
    // A machine that exists has its root already: only data disks are written.
    const written = isMade ? storages.filter(({ data }) => data) : storages;
    return firstRefusal(written, (share) => freeShareRefusal(share, unmade));
  },
];

function refusalOf(wanted: Wanted, host: HostObject, promises: Promises): string | undefined {
  for (const check of checks) {
    const refusal = check(wanted, host, promises);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function publicAddressRefusal(
  { isMade = false }: Wanted,
  { status: { facts } }: HostObject,
  { unmade }: Promises,
): string | undefined {
  const { publicBlock = "", publicTotal = 0, publicFree = 0 } = facts ?? {};
  if (isMade || publicBlock === "" || publicFree > unmade) return undefined;
  return `${publicTotal - publicFree + unmade} of the ${publicTotal} addresses of ${publicBlock} are taken.`;
}

/** What would be left of the host with it: of its memory or its storages, whichever is least, and together. May be below zero. */
function freeSharesOf(wanted: Wanted, host: HostObject, promises: Promises): { least: number; together: number } {
  const memoryTotal = (host.status.facts?.memoryTotalBytes ?? 0) * (host.spec.memoryOvercommit ?? 1);
  const memoryShare = 1 - (promises.memoryBytes + wanted.memoryBytes) / memoryTotal;
  const diskShare = Math.min(
    ...promises.storages.map(
      ({ freeBytes, totalBytes, firstBytes }) => (freeBytes - (promises.unmade + 1) * firstBytes) / totalBytes,
    ),
  );
  return { least: Math.min(memoryShare, diskShare), together: memoryShare + diskShare };
}
