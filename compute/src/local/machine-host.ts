import { mkdirSync, realpathSync } from "node:fs";
import type { Additions } from "@holdfast/image/additions.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { HostAbilities } from "./host-abilities.ts";
import type { AddressNetwork } from "./address-network.ts";
import { type Layout, layoutOf } from "./machine-paths.ts";
import { hiddenDirectoryIn, type MachineRuntime } from "./machine-runtime.ts";
import type { StorageTiers } from "./storage-tiers.ts";

/** Dependencies of every provider of machines on this host. */
export interface MachineHostDeps {
  /** Directory of the machines and their bookkeeping. Several controllers of one host may share it. */
  readonly directory: string;
  readonly imagesDir: string;
  /** Plugins that the operator adds to images; none if absent. */
  readonly additions?: Additions;
  /** Root directory of the workspace. */
  readonly checkout: string;
  /** Path of the node binary that machines run. */
  readonly node: string;
  /** Features of the host (host-abilities.ts). */
  readonly abilities: HostAbilities;
  /** Environment of engines that the host has installed: PATH. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Storage tiers, with the directories of their data disks. */
  readonly tiers: StorageTiers;
  /**
   * Network of public addresses for new machines, such as `203.0.113.16/28`; without it they have a private address
   * only.
   */
  readonly publicBlock?: AddressNetwork;
  readonly clock: Clock;
  readonly log: Log;
}

/** Creates the provider's directory; returns its layout, and the parts of the host that its machines share. */
export function openMachineHost(deps: MachineHostDeps): { readonly layout: Layout; readonly runtime: MachineRuntime } {
  mkdirSync(deps.directory, { recursive: true, mode: 0o700 });
  const layout = layoutOf(realpathSync(deps.directory));
  for (const each of [layout.machines, layout.running, layout.addresses, layout.preparedDisks]) {
    mkdirSync(each, { recursive: true, mode: 0o700 });
  }
  const checkout = realpathSync(deps.checkout);
  const hidden = hiddenDirectoryIn(checkout, layout.directory);
  return { layout, runtime: { abilities: deps.abilities, checkout, hidden, node: realpathSync(deps.node) } };
}
