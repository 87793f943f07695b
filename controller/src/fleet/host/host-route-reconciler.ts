import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { HostRoute, OtherHost } from "@holdfast/compute/compute-provider.ts";
import type { RegisteredController } from "#kernel/runtime/controller-registry.ts";
import { again, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject, isRemoved } from "./host.ts";
import type { HostLink, HostLinks } from "./host-links.ts";

export interface HostRouteDeps {
  readonly hosts: Collection<HostObject>;
  readonly links: Pick<HostLinks, "subscribe"> & { all(): ReadonlyMap<string, Pick<HostLink, "routes">> };
  /** The controllers; the address of their listeners is the address of their own host. */
  readonly controllerRegistry: { controllers(): readonly Pick<RegisteredController, "address">[] };
  readonly begin: () => UnitOfWork;
}

/** Interval of checks: a route that broke, or that an operator repaired, is detected within this time. */
const checkIntervalMs = 30_000;
const applyTimeoutMs = 20_000;

/**
 * Makes each host maintain its routes to the machines of all other hosts, and writes the routes that do not work. It
 * applies to hosts with a network of their machines only. Key: host id.
 */
export function createHostRouteWork({ hosts, links, controllerRegistry, begin }: HostRouteDeps): ControlLoop {
  return {
    reconciler: {
      name: "host-path",
      async reconcile(id, signal) {
        const host = hosts.get(id)?.object;
        const routes = links.all().get(id)?.routes;
        if (host === undefined || isRemoved(host) || routes === undefined) return settled;
        if (host.status.state !== "ready" || !hasNetwork(host)) return again(checkIntervalMs, "host not ready");
        const all = Iterator.from(hosts.values()).map(({ object }) => object);
        const within = AbortSignal.any([signal, AbortSignal.timeout(applyTimeoutMs)]);
        const checked = await routes.apply(adjacentOf(id, all, addressOfControllers(controllerRegistry)), within);
        const missing = checked.filter(({ problem }) => problem !== "");
        await writeMissing(id, missing, hosts, begin, signal);
        return again(checkIntervalMs, "routes");
      },
    },
    *keys() {
      for (const { object } of hosts.values()) yield object.metadata.id;
    },
    subscribe(onChange) {
      // Each host has a route to each other one, so a new or moved host concerns all.
      let before = "";
      return hosts.subscribe(() => {
        const all = Array.from(hosts.values(), ({ object }) => object);
        const now = JSON.stringify(all.filter(hasNetwork).map(locationOf));
        if (now === before) return;
        before = now;
        for (const { metadata } of all) onChange(metadata.id);
      });
    },
    concurrency: 8,
  };
}

/** The other hosts with a network of their machines, with these networks and the hosts' addresses. */
export function adjacentOf(id: string, hosts: Iterable<HostObject>, ofControllers: string): OtherHost[] {
  return Iterator.from(hosts)
    .filter((host) => host.metadata.id !== id && !isRemoved(host) && hasNetwork(host))
    .map(({ metadata, spec, status }) => ({
      hostId: metadata.id,
      network: `${status.facts?.addressBlock}.0.0/16`,
      address: spec.address === "" ? ofControllers : endpointOf(spec.address).host,
    }))
    .toArray();
}

/** Address of the controllers' own host, whose object has no address: the address of a controller's listener. */
function addressOfControllers(controllerRegistry: HostRouteDeps["controllerRegistry"]): string {
  const listening = controllerRegistry.controllers().find(({ address }) => address !== "");
  return listening === undefined ? "" : endpointOf(listening.address).host;
}

/** False for the process provider, whose machines have loopback addresses that no network routes. */
function hasNetwork({ status: { facts } }: HostObject): boolean {
  return facts !== null && !facts.addressBlock.startsWith("127.");
}

function locationOf(host: HostObject) {
  const { metadata, spec, status } = host;
  return [metadata.id, spec.address, status.facts?.addressBlock, status.state, isRemoved(host)];
}

async function writeMissing(
  id: string,
  missingPaths: readonly HostRoute[],
  hosts: HostRouteDeps["hosts"],
  begin: HostRouteDeps["begin"],
  signal: AbortSignal,
): Promise<void> {
  await retryConflict(signal, async () => {
    const before = await hosts.getCurrent(id, signal);
    if (before === undefined) return;
    const { status } = before.object;
    if (JSON.stringify(status.missingPaths ?? []) === JSON.stringify(missingPaths)) return;
    const unit = begin();
    unit.update(hostKind, before, { ...before.object, status: { ...status, missingPaths } });
    await unit.commit(signal);
  });
}
