import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ComputeProvider } from "./compute-provider.ts";
import { createIncusProvider } from "./incus/incus-provider.ts";
import { openIncus } from "./incus/open-incus.ts";
import { type AddressNetwork, addressNetworkOf, overlap } from "./local/address-network.ts";
import { detectAbilities, type HostAbilities } from "./local/host-abilities.ts";
import { type HostFacts, readHostFacts, type RootStorage } from "./local/host-facts.ts";
import { layoutOf } from "./local/machine-paths.ts";
import { createSnapshotTrial } from "./local/machine-snapshots.ts";
import { createPublicAddresses } from "./local/public-addresses.ts";
import { readStorageTiers, type StorageTiers } from "./local/storage-tiers.ts";
import { preparedEngines } from "./process/prepared-engines.ts";
import { createProcessProvider } from "./process/process-provider.ts";
import type { ProviderSettings } from "./provider-settings.ts";

export interface ProviderDeps {
  readonly config: ProviderSettings;
  /** Ports of this host that machines with networks of their own may call. */
  readonly hostPorts: readonly number[];
  /** Code of the platform: the workspace's root. */
  readonly checkout: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The provider of this host, with what the host is and has. */
export interface OwnProvider extends ComputeProvider {
  facts(): Promise<HostFacts>;
  /** Ends what runs in the background here; machines go on. */
  close(): Promise<void>;
}

/** First two numbers of the machines' addresses. */
export function addressBlockOf(config: ProviderSettings): string {
  return config.provider === "process" ? config.loopbackBlock : config.incusAddressBlock;
}

/** Public addresses of this host's machines; undefined when they have none. Throws for what is no such network, or not apart from the private ones. */
function publicBlockOf(config: ProviderSettings): AddressNetwork | undefined {
  if (config.publicAddresses === "") return undefined;
  try {
    const block = addressNetworkOf(config.publicAddresses);
    const own = `${addressBlockOf(config)}.0.0/16`;
    if (overlap(block, addressNetworkOf(own)))
      throw new Error(`${block.text} is part of ${own}, the private addresses`);
    return block;
  } catch (error) {
    throw new Error(`HOLDFAST_PUBLIC_ADDRESSES: ${(error as Error).message}`, { cause: error });
  }
}

/** The provider that the settings name. */
export async function createProvider(deps: ProviderDeps): Promise<OwnProvider> {
  const { config, checkout } = deps;
  const { version } = JSON.parse(await readFile(join(checkout, "package.json"), "utf8")) as { version: string };
  const tiers = readStorageTiers(config.storageTiers);
  const abilities = await detectAbilities();
  const facts = {
    provider: config.provider,
    directory: config.processDir,
    tiers,
    noSnapshots: createSnapshotTrial(config.processDir, tiers, abilities.loop),
    addressBlock: addressBlockOf(config),
    imagesDir: config.imagesDir,
    publicAddresses: createPublicAddresses(layoutOf(config.processDir).publicAddresses, publicBlockOf(config)),
    version,
  };
  const provider = await providerOf({ ...deps, tiers, abilities });
  return {
    ...provider,
    async facts() {
      const signal = AbortSignal.timeout(factsWithinMs);
      const noVirtualMachines = (await provider.whyNoVirtualMachines(signal)) ?? "";
      return readHostFacts({ ...facts, noVirtualMachines, rootsOf: (tier) => provider.rootsOf(tier, signal) });
    },
  };
}

/** A daemon that does not answer is a host that tells nothing of itself. */
const factsWithinMs = 5_000;

async function providerOf(
  deps: ProviderDeps & { readonly tiers: StorageTiers; readonly abilities: HostAbilities },
): Promise<
  ComputeProvider & {
    whyNoVirtualMachines(signal: AbortSignal): Promise<string | undefined>;
    rootsOf(tier: string, signal: AbortSignal): Promise<RootStorage | undefined>;
    close(): Promise<void>;
  }
> {
  const { config, log } = deps;
  const publicBlock = publicBlockOf(config);
  const host = {
    ...deps,
    ...(publicBlock !== undefined && { publicBlock }),
    directory: config.processDir,
    imagesDir: config.imagesDir,
    node: process.execPath,
  };
  const spares = { kinds: preparedEngines, count: config.spares };
  switch (config.provider) {
    case "process": {
      return createProcessProvider({ ...host, loopbackBlock: config.loopbackBlock, spares });
    }
    case "incus": {
      const provider = createIncusProvider({
        ...host,
        incus: await openIncus(config, log),
        addressBlock: config.incusAddressBlock,
        hostPorts: deps.hostPorts,
        pool: poolsOf(config),
        spares,
      });
      // A machine that is asked for meanwhile waits for the same, and says what went wrong.
      provider
        .prepare(AbortSignal.timeout(prepareWithinMs))
        .catch((error: unknown) => log.warn("machines are not prepared", { error: String(error) }));
      return provider;
    }
    default:
      throw new Error(`HOLDFAST_PROVIDER: ${config.provider} is neither process nor incus`);
  }
}

const prepareWithinMs = 300_000;

/** The pool for the roots of each tier's machines. Throws for an entry that names no tier of this host, or no pool. */
function poolsOf(config: ProviderSettings): (tier: string) => string {
  const { names } = readStorageTiers(config.storageTiers);
  const pools = new Map<string, string>();
  for (const entry of config.incusTierPools) {
    const [tier = "", pool = ""] = entry.split("=", 2);
    if (pool === "" || !names.includes(tier))
      throw new Error(
        `HOLDFAST_INCUS_TIER_POOLS: ${entry} is not one of ${names.join(", ")}, = and the name of a pool`,
      );
    pools.set(tier, pool);
  }
  return (tier) => pools.get(tier) ?? config.incusPool;
}
