import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import type { HostFacts } from "@holdfast/compute/local/host-facts.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { HostObject } from "./host.ts";

/** The connection of this controller to a host. */
export interface HostLink extends ComputeProvider {
  /** The host's current facts, such as capacity and storage tiers. Throws HostUnreachable. */
  facts(signal: AbortSignal): Promise<HostFacts>;
  /** Calls back when the connection is established or lost; absent for the own host, which needs no connection. */
  subscribe?(onChange: () => void): { close(): void };
  close?(): void;
}

export interface HostLinksDeps {
  readonly hosts: Pick<Collection<HostObject>, "get" | "values" | "subscribe">;
  /** Hosts that need no connection, by id: the controllers' own host. */
  readonly own: ReadonlyMap<string, HostLink>;
  /** Dials a host, and redials after each disconnect, until the link is closed. Absent in tests with own hosts only. */
  readonly connect?: (host: HostObject) => HostLink;
}

/** A link to each host, own or dialed. */
export interface HostLinks {
  all(): ReadonlyMap<string, HostLink>;
  /** Calls back with a host's id when its link is added or removed, or its connection is established or lost. */
  subscribe(onChange: (hostId: string) => void): { close(): void };
  close(): void;
}

/** Follows the hosts' objects: dials new hosts and new addresses, and disconnects from deleted and destroyed hosts. */
export function createHostLinks({ hosts, own, connect }: HostLinksDeps): HostLinks {
  const links = new Map<string, HostLink>(own);
  const dialed = new Map<
    string,
    { readonly link: HostLink; readonly address: string; readonly watch?: { close(): void } | undefined }
  >();
  const subscribers = new Set<(hostId: string) => void>();

  function notify(hostId: string): void {
    for (const subscriber of subscribers) subscriber(hostId);
  }

  function disconnect(hostId: string): void {
    const previous = dialed.get(hostId);
    if (previous === undefined) return;
    dialed.delete(hostId);
    links.delete(hostId);
    previous.watch?.close();
    previous.link.close?.();
  }

  function update(hostId: string): void {
    if (own.has(hostId)) return;
    const host = hosts.get(hostId)?.object;
    const address = host === undefined || host.spec.destroyedAt !== null ? "" : host.spec.address;
    if (dialed.get(hostId)?.address === address) return;
    const hadLink = links.has(hostId);
    disconnect(hostId);
    if (connect !== undefined && host !== undefined && address !== "") {
      const link = connect(host);
      links.set(hostId, link);
      dialed.set(hostId, { link, address, watch: link.subscribe?.(() => notify(hostId)) });
    }
    if (hadLink || links.has(hostId)) notify(hostId);
  }

  const watch = hosts.subscribe(update);
  for (const { object } of hosts.values()) update(object.metadata.id);

  return {
    all: () => links,
    subscribe(onChange) {
      subscribers.add(onChange);
      return { close: () => subscribers.delete(onChange) };
    },
    close() {
      watch.close();
      for (const hostId of dialed.keys()) disconnect(hostId);
    },
  };
}
