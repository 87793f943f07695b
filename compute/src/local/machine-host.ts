import { mkdirSync, realpathSync } from "node:fs";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { HostAbilities } from "./host-abilities.ts";
import type { AddressNetwork } from "./address-network.ts";
import { type Layout, layoutOf } from "./machine-paths.ts";
import { hiddenIn, type Place } from "./place.ts";
import type { StorageTiers } from "./storage-tiers.ts";

/** What every provider of machines on this host is made of. */
export interface MachineHostDeps {
  /** Machines and their bookkeeping live below it. Several controllers of one host may share it. */
  readonly directory: string;
  readonly imagesDir: string;
  /** Code of the platform: the workspace's root. */
  readonly checkout: string;
  /** Path of the node binary that machines run. */
  readonly node: string;
  /** What the host lets us do (host-abilities.ts). */
  readonly abilities: HostAbilities;
  /** For engines installed on the host: PATH. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Tiers of storage, and where data disks of each are. */
  readonly tiers: StorageTiers;
  /** Public addresses of new machines, such as `203.0.113.16/28`; they have a private one alone when absent. */
  readonly publicBlock?: AddressNetwork;
  readonly clock: Clock;
  readonly log: Log;
}

/** Makes the provider's directory, and answers where everything is in it and what its machines share of the host. */
export function openMachineHost(deps: MachineHostDeps): { readonly layout: Layout; readonly place: Place } {
  mkdirSync(deps.directory, { recursive: true, mode: 0o700 });
  const layout = layoutOf(realpathSync(deps.directory));
  for (const each of [layout.machines, layout.running, layout.addresses, layout.spares]) {
    mkdirSync(each, { recursive: true, mode: 0o700 });
  }
  const checkout = realpathSync(deps.checkout);
  const hidden = hiddenIn(checkout, layout.directory);
  return { layout, place: { abilities: deps.abilities, checkout, hidden, node: realpathSync(deps.node) } };
}
