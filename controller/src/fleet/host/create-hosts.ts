import { join } from "node:path";
import type { Clock } from "@holdfast/common/clock.ts";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import type { Log } from "@holdfast/common/log.ts";
import { addressBlockOf, createProvider, type OwnProvider } from "@holdfast/compute/create-provider.ts";
import { createHostsProvider, type HostsProvider } from "@holdfast/compute/router/hosts-provider.ts";
import type { FleetSettings } from "../fleet-settings.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { InstallationAuthority } from "#kernel/pki/create-authority.ts";
import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { Store } from "#kernel/store/store.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { hostKind, type HostObject, type HostSpec, newHost, withHostSpec } from "./host.ts";
import { createHostLinks, type HostLinks } from "./host-links.ts";
import { createHostTrust, type HostTrust } from "./host-trust.ts";

export interface HostsDeps {
  readonly config: FleetSettings;
  readonly installationId: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly store: Store;
  readonly hosts: Collection<HostObject>;
  readonly machines: Collection<MachineObject>;
  readonly begin: () => UnitOfWork;
  readonly controllerRegistry: ControllerRegistry;
  readonly authority: InstallationAuthority;
  readonly sealer: Sealer;
  /** True after a restore: hosts may have newer certificates than the store. */
  readonly storeMayBeBehind: () => boolean;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

/**
 * Access of one controller to the hosts: the controllers' own host if there is one, and a connection to each other
 * host.
 *
 * A host is an object (`host.ts`) that an operator adds; its join file has a one-time token with which the host enrolls
 * (`host-trust.ts`, `host-enrollment.ts`). Controllers dial every host (`host-links.ts`) and poll its facts and images
 * (`host-reconciler.ts`). A drain is a field of the spec; its progress is computed from the remaining machines
 * (`host-drain-plan.ts`).
 */
export interface Hosts {
  readonly trust: HostTrust;
  readonly links: HostLinks;
  /** Compute provider for machines of all hosts. */
  readonly provider: HostsProvider;
  /** Default overcommit factors of a host; null: no limit. */
  readonly overcommit: { readonly memory: number; readonly disk: number | null };
  close(): Promise<void>;
}

const checkout = join(import.meta.dirname, "..", "..", "..", "..");

/**
 * Resolves when the controllers' own host, if there is one, is stored, and connections to the others are being opened.
 */
export async function createHosts(deps: HostsDeps, signal: AbortSignal): Promise<Hosts> {
  const { config, environment, hosts, machines, begin, clock, log } = deps;
  const overcommit = {
    memory: config.memoryOvercommit,
    disk: config.diskOvercommit === 0 ? null : config.diskOvercommit,
  };
  const trust = await createHostTrust(deps);
  const ownHost = config.provider === "none" ? undefined : await openOwnHost();
  const links = createHostLinks({ hosts, own: new Map(ownHost && [[config.hostId, ownHost]]), connect: trust.connect });
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
    await recordOwnHost(config.hostId, settings, { hosts, begin, clock }, signal);
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
      await ownHost?.close();
    },
  };
}

export interface OwnHostDeps {
  readonly hosts: Pick<Collection<HostObject>, "getCurrent" | "untilRevision">;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
}

/**
 * Creates the object of the controllers' own host, or updates its zone and overcommit from the settings. Cordon and
 * drain remain as operators set them. Resolves when the cache has the object.
 */
export async function recordOwnHost(
  id: string,
  settings: Pick<HostSpec, "zone" | "memoryOvercommit" | "diskOvercommit">,
  { hosts, begin, clock }: OwnHostDeps,
  signal: AbortSignal,
): Promise<void> {
  await retryConflict(signal, async () => {
    const stored = await hosts.getCurrent(id, signal);
    const unit = begin();
    if (stored === undefined) {
      unit.create(hostKind, newHost(id, { ...settings, address: "" }, clock.now()));
    } else {
      const after = withHostSpec(stored.object, settings, clock.now());
      if (JSON.stringify(after.spec) === JSON.stringify(stored.object.spec)) return;
      unit.update(hostKind, stored, after);
    }
    await hosts.untilRevision(await unit.commit(signal), 10_000);
  });
}
