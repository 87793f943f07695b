import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { HostPath, Neighbour } from "@holdfast/compute/compute-provider.ts";
import type { Member } from "#kernel/runtime/membership.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject, isOut } from "./host.ts";
import type { HostLink, HostLinks } from "./host-links.ts";

export interface HostPathDeps {
  readonly hosts: Collection<HostObject>;
  readonly links: Pick<HostLinks, "subscribe"> & { all(): ReadonlyMap<string, Pick<HostLink, "paths">> };
  /** Controllers, whose own host is where they are. */
  readonly membership: { members(): readonly Pick<Member, "address">[] };
  readonly begin: () => UnitOfWork;
}

/** A path that broke, or that an operator has made, shows within this time. */
const lookEveryMs = 30_000;
const keptWithinMs = 20_000;

/**
 * Has each host keep its way to the machines of all others, and writes which of them it does not reach. Only where machines have
 * networks of their own. Key: host id.
 */
export function createHostPathWork({ hosts, links, membership, begin }: HostPathDeps): ControlLoop {
  return {
    reconciler: {
      name: "host-path",
      async reconcile(id, signal) {
        const host = hosts.get(id)?.object;
        const paths = links.all().get(id)?.paths;
        if (host === undefined || isOut(host) || paths === undefined) return settled;
        if (host.status.state !== "ready" || !hasNetwork(host)) return again(lookEveryMs, "the host");
        const all = Iterator.from(hosts.values()).map(({ object }) => object);
        const within = AbortSignal.any([signal, AbortSignal.timeout(keptWithinMs)]);
        const kept = await paths.keep(neighboursOf(id, all, addressOfControllers(membership)), within);
        const missing = kept.filter(({ problem }) => problem !== "");
        await writeMissing(id, missing, hosts, begin, signal);
        return again(lookEveryMs, "paths");
      },
    },
    *keys() {
      for (const { object } of hosts.values()) yield object.metadata.id;
    },
    subscribe(onChange) {
      // Each host has a way to each other one: those that came or moved concern all.
      let before = "";
      return hosts.subscribe(() => {
        const all = Array.from(hosts.values(), ({ object }) => object);
        const now = JSON.stringify(all.filter(hasNetwork).map(placeOf));
        if (now === before) return;
        before = now;
        for (const { metadata } of all) onChange(metadata.id);
      });
    },
    concurrency: 8,
  };
}

/** Pure: the other hosts whose machines have networks of their own, and where each is. */
export function neighboursOf(id: string, hosts: Iterable<HostObject>, ofControllers: string): Neighbour[] {
  return Iterator.from(hosts)
    .filter((host) => host.metadata.id !== id && !isOut(host) && hasNetwork(host))
    .map(({ metadata, spec, status }) => ({
      hostId: metadata.id,
      network: `${status.facts?.addressBlock}.0.0/16`,
      address: spec.address === "" ? ofControllers : endpointOf(spec.address).host,
    }))
    .toArray();
}

/** The controllers' own host has no address of its own: it is where they are. */
function addressOfControllers(membership: HostPathDeps["membership"]): string {
  const listening = membership.members().find(({ address }) => address !== "");
  return listening === undefined ? "" : endpointOf(listening.address).host;
}

/** With the process provider machines have loopback addresses, which no network knows. */
function hasNetwork({ status: { facts } }: HostObject): boolean {
  return facts !== null && !facts.addressBlock.startsWith("127.");
}

function placeOf(host: HostObject) {
  const { metadata, spec, status } = host;
  return [metadata.id, spec.address, status.facts?.addressBlock, status.state, isOut(host)];
}

async function writeMissing(
  id: string,
  missingPaths: readonly HostPath[],
  hosts: HostPathDeps["hosts"],
  begin: HostPathDeps["begin"],
  signal: AbortSignal,
): Promise<void> {
  await retryConflict(signal, async () => {
    const before = await hosts.fresh(id, signal);
    if (before === undefined) return;
    const { status } = before.object;
    if (JSON.stringify(status.missingPaths ?? []) === JSON.stringify(missingPaths)) return;
    const unit = begin();
    unit.update(hostKind, before, { ...before.object, status: { ...status, missingPaths } });
    await unit.commit(signal);
  });
}
