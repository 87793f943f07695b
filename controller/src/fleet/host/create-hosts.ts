import { join } from "node:path";
import type { Clock } from "@holdfast/common/clock.ts";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { addressBlockOf, createProvider, type OwnProvider } from "@holdfast/compute/create-provider.ts";
import { createHostsProvider, type HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import type { FleetSettings } from "../fleet-settings.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import type { Membership } from "#kernel/runtime/membership.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Store } from "#kernel/store/store.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { HostObject } from "./host.ts";
import { createHostLinks, type HostLinks } from "./host-links.ts";
import { createHostTrust, type HostTrust } from "./host-trust.ts";
import { keepOwnHost } from "./own-host.ts";

export interface HostsDeps {
  readonly config: FleetSettings;
  readonly installationId: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly store: Store;
  readonly hosts: Collection<HostObject>;
  readonly machines: Collection<MachineObject>;
  readonly begin: () => UnitOfWork;
  readonly membership: Membership;
  readonly authority: InstallationAuthority;
  readonly sealer: Sealer;
  /** True after a restore: hosts may have newer certificates than the store knows. */
  readonly storeMayBeBehind: () => boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/** The hosts as a controller has them: its own if it has one, and its ways to all others. */
export interface Hosts {
  readonly trust: HostTrust;
  readonly links: HostLinks;
  /** Machines, whichever host they are on. */
  readonly provider: HostsProvider;
  /** So many times what a host has may be promised on it, unless its operator says otherwise; null: without end. */
  readonly overcommit: { readonly memory: number; readonly disk: number | null };
  close(): Promise<void>;
}

const checkout = join(import.meta.dirname, "..", "..", "..", "..");

/** Resolves when the own host, if there is one, is on record and the others are dialled. */
export async function createHosts(deps: HostsDeps, signal: AbortSignal): Promise<Hosts> {
  const { config, environment, hosts, machines, begin, clock, log } = deps;
  const overcommit = {
    memory: config.memoryOvercommit,
    disk: config.diskOvercommit === 0 ? null : config.diskOvercommit,
  };
  const trust = await createHostTrust(deps);
  const own = config.provider === "none" ? undefined : await openOwnHost();
  const links = createHostLinks({ hosts, own: new Map(own && [[config.hostId, own]]), connect: trust.connect });
  const provider = createHostsProvider({
    hosts: links.all,
    onHosts: links.subscribe,
    hostOf: (machineId) => machines.get(machineId)?.object.spec.hostId,
  });

  async function openOwnHost(): Promise<OwnProvider> {
    const hostPorts = [...config.agentListen, ...config.dnsServers].map((listener) => endpointOf(listener).port);
    const provided = await createProvider({ config, hostPorts, checkout, environment, clock, log });
    const settings = {
      zone: config.zone,
      memoryOvercommit: config.provider === "process" ? null : overcommit.memory,
      diskOvercommit: overcommit.disk,
    };
    await keepOwnHost(config.hostId, settings, { hosts, begin, clock }, signal);
    await trust.claimOwn(config.hostId, addressBlockOf(config));
    return provided;
  }

  return {
    trust,
    links,
    provider,
    overcommit,
    async close() {
      links.close();
      trust.close();
      await own?.close();
    },
  };
}
