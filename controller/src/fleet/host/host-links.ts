import type { ComputeProvider } from "@holdfast/compute/compute-provider.ts";
import type { HostFacts } from "@holdfast/compute/local/host-facts.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { HostObject } from "./host.ts";

/** A host as this controller reaches it. */
export interface HostLink extends ComputeProvider {
  /** What it is and has now. Throws HostUnreachable. */
  facts(signal: AbortSignal): Promise<HostFacts>;
  /** Calls back when the connection came or went; absent where there is none to lose. */
  subscribe?(onChange: () => void): { close(): void };
  close?(): void;
}

export interface HostLinksDeps {
  readonly hosts: Pick<Collection<HostObject>, "get" | "values" | "subscribe">;
  /** Hosts that need no dialling, by id: the controllers' own. */
  readonly own: ReadonlyMap<string, HostLink>;
  /** Dials a host, and again whenever the connection broke, until the link is closed. Absent where there are only own ones. */
  readonly connect?: (host: HostObject) => HostLink;
}

/** A link to each host that there is, own or dialled. */
export interface HostLinks {
  all(): ReadonlyMap<string, HostLink>;
  /** Calls back with a host's id when its link came, went, or was connected or lost. */
  subscribe(onChange: (hostId: string) => void): { close(): void };
  close(): void;
}

/** Follows the hosts' objects: one that is new, or has a new address, is dialled; one that is gone or destroyed is left. */
export function createHostLinks({ hosts, own, connect }: HostLinksDeps): HostLinks {
  const links = new Map<string, HostLink>(own);
  const dialled = new Map<
    string,
    { readonly link: HostLink; readonly address: string; readonly watch?: { close(): void } | undefined }
  >();
  const subscribers = new Set<(hostId: string) => void>();

  function tell(hostId: string): void {
    for (const subscriber of subscribers) subscriber(hostId);
  }

  function leave(hostId: string): void {
    const known = dialled.get(hostId);
    if (known === undefined) return;
    dialled.delete(hostId);
    links.delete(hostId);
    known.watch?.close();
    known.link.close?.();
  }

  function follow(hostId: string): void {
    if (own.has(hostId)) return;
    const host = hosts.get(hostId)?.object;
    const address = host === undefined || host.spec.destroyedAt !== null ? "" : host.spec.address;
    if (dialled.get(hostId)?.address === address) return;
    const hadLink = links.has(hostId);
    leave(hostId);
    if (connect !== undefined && host !== undefined && address !== "") {
      const link = connect(host);
      links.set(hostId, link);
      dialled.set(hostId, { link, address, watch: link.subscribe?.(() => tell(hostId)) });
    }
    if (hadLink || links.has(hostId)) tell(hostId);
  }

  const watch = hosts.subscribe(follow);
  for (const { object } of hosts.values()) follow(object.metadata.id);

  return {
    all: () => links,
    subscribe(onChange) {
      subscribers.add(onChange);
      return { close: () => subscribers.delete(onChange) };
    },
    close() {
      watch.close();
      for (const hostId of dialled.keys()) leave(hostId);
    },
  };
}
