import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HostDrainSchema, HostSchema } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import { guestKernelSeries } from "@holdfast/compute/compute-provider.ts";
import type { HostFacts, RootStorage } from "@holdfast/compute/local/host-facts.ts";
import { type HostObject, stopsSingleNodes } from "./host.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { Owners } from "../owner/owners.ts";

/** Maximum number of missing paths in a message. */
const missingPathsMax = 100;

/** The API message of a host, with the resources that are reserved for these machines. */
export function hostMessage(
  host: HostObject,
  machines: Iterable<MachineObject>,
  owners: Pick<Owners, "describe">,
): MessageInitShape<typeof HostSchema> {
  const { metadata, spec, status } = host;
  const hostMachines = Iterator.from(machines)
    .filter((machine) => machine.spec.hostId === metadata.id)
    .toArray();
  const owned = hostMachines.filter((machine) => machine.spec.owner !== null);
  const sum = (of: (machine: MachineObject) => number) => BigInt(owned.reduce((all, machine) => all + of(machine), 0));
  const { facts, certificate, missingPaths: missing = [] } = status;
  const named = missing.slice(0, missingPathsMax);
  const pools = rootPoolsOf(facts);
  const problems = [...pools, ...named].map(({ problem }) => problem).filter((problem) => problem !== "");
  return {
    id: metadata.id,
    zone: spec.zone,
    address: spec.address,
    state: status.state,
    since: timestampFromMs(status.since),
    reason: status.reason || problems.join(" "),
    cordoned: spec.cordoned,
    drain: drainMessage(host, owners),
    ...(facts !== null && {
      provider: facts.provider,
      memoryTotalBytes: BigInt(facts.memoryTotalBytes),
      memoryFreeBytes: BigInt(facts.memoryFreeBytes),
      diskTotalBytes: BigInt(facts.diskTotalBytes),
      diskFreeBytes: BigInt(facts.diskFreeBytes),
      storageTiers: facts.tiers.map(({ name }) => name),
      version: facts.version,
      publicAddresses: facts.publicBlock,
      publicAddressesTotal: facts.publicTotal,
      publicAddressesFree: facts.publicFree,
    }),
    memoryPromisedBytes: sum((machine) => machine.spec.memoryBytes),
    memoryOvercommit: spec.memoryOvercommit ?? 0,
    diskPromisedBytes: sum((machine) => machine.spec.diskBytes),
    diskOvercommit: spec.diskOvercommit ?? 0,
    ...(pools.length > 0 && {
      rootTotalBytes: BigInt(pools.reduce((all, { totalBytes }) => all + totalBytes, 0)),
      rootFreeBytes: BigInt(pools.reduce((all, { freeBytes }) => all + freeBytes, 0)),
      rootPromisedBytes: sum((machine) => machine.spec.rootBytes),
    }),
    engines: status.images
      .filter(({ available, engine }) => available && engine !== guestKernelSeries.engine)
      .map(({ engine, version }) => `${engine} ${version}`),
    machines: owned.length,
    waitingMachines: hostMachines.length - owned.length,
    createdAt: timestampFromMs(metadata.createdAt),
    missingPaths: named.map(({ hostId, problem }) => ({ hostId, reason: problem })),
    missingPathCount: missing.length,
    ...(certificate !== null && { certificateExpiresAt: timestampFromMs(certificate.expiresAt) }),
  };
}

/** Storage pools for roots. A pool that several tiers share is listed once. */
function rootPoolsOf(facts: HostFacts | null): RootStorage[] {
  const pools = (facts?.tiers ?? []).flatMap(({ roots }) => roots ?? []);
  return [...new Map(pools.map((pool) => [pool.fileSystem, pool])).values()];
}

/**
 * The message of a host's drain. It reports no progress from before the request, or from before the consent to stop
 * single nodes.
 */
function drainMessage(host: HostObject, owners: Pick<Owners, "describe">): MessageInitShape<typeof HostDrainSchema> {
  const { drain: request } = host.spec;
  const { drain } = host.status;
  if (request === null) return { state: "none" };
  const { stopSingleNodes } = request;
  if (drain.state === "none")
    return { state: "draining", since: timestampFromMs(request.requestedAt), stopSingleNodes };
  const { since, machines, remaining, waitsFor } = drain;
  const isOutdated = drain.state === "blocked" && stopsSingleNodes(host);
  return {
    state: isOutdated ? "draining" : drain.state,
    since: timestampFromMs(since),
    stopSingleNodes,
    machines,
    left: remaining,
    waitsFor: (isOutdated ? [] : waitsFor).map(({ ownerKind: kind = "", ownerId: id, reason }) => ({
      serviceId: id,
      owner: { kind, id, name: owners.describe({ kind, id })?.name ?? "" },
      reason,
    })),
  };
}
