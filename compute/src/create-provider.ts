import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ComputeProvider } from "./compute-provider.ts";
import { type Additions, readAdditions } from "@holdfast/image/additions.ts";
import { createIncusProvider } from "./incus/incus-provider.ts";
import { openIncus } from "./incus/open-incus.ts";
import { type AddressNetwork, addressNetworkOf, overlap } from "./local/address-network.ts";
import { detectAbilities, type HostAbilities } from "./local/host-abilities.ts";
import { type HostFacts, readHostFacts, type RootStorage } from "./local/host-facts.ts";
import { layoutOf } from "./local/machine-paths.ts";
import { createSnapshotProbe } from "./local/machine-snapshots.ts";
import { createPublicAddresses } from "./local/public-addresses.ts";
import { readStorageTiers, type StorageTiers } from "./local/storage-tiers.ts";
import { preparedEngines } from "./local/prepared-disks.ts";
import { createProcessProvider } from "./process/process-provider.ts";
import type { ProviderSettings } from "./provider-settings.ts";

export interface ProviderDeps {
  readonly config: ProviderSettings;
  /** Ports of this host that machines with networks of their own may call. */
  readonly hostPorts: readonly number[];
  /** Root directory of the workspace. */
  readonly checkout: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The provider of this host, with the host's facts. */
export interface OwnProvider extends ComputeProvider {
  facts(): Promise<HostFacts>;
  /** Ends background work; machines continue. */
  close(): Promise<void>;
}

/** First two octets of the machines' addresses, such as `127.77`. */
export function addressBlockOf(config: ProviderSettings): string {
  return config.provider === "process" ? config.loopbackBlock : config.incusAddressBlock;
}

/**
 * Public addresses of this host's machines; undefined if there are none. Throws for an invalid network, and for one
 * that overlaps the private addresses.
 */
function publicBlockOf(config: ProviderSettings): AddressNetwork | undefined {
  if (config.publicAddresses === "") return undefined;
  try {
    const block = addressNetworkOf(config.publicAddresses);
    const privateBlock = `${addressBlockOf(config)}.0.0/16`;
    if (overlap(block, addressNetworkOf(privateBlock)))
      throw new Error(`${block.text} is part of ${privateBlock}, the private addresses`);
    return block;
  } catch (error) {
    throw new Error(`HOLDFAST_PUBLIC_ADDRESSES: ${(error as Error).message}`, { cause: error });
  }
}

/** Opens the provider that the settings name. */
export async function createProvider(deps: ProviderDeps): Promise<OwnProvider> {
  const { config, checkout } = deps;
  const { version } = JSON.parse(await readFile(join(checkout, "package.json"), "utf8")) as { version: string };
  const tiers = readStorageTiers(config.storageTiers);
  const abilities = await detectAbilities();
  const facts = {
    provider: config.provider,
    directory: config.processDir,
    tiers,
    snapshotProblem: createSnapshotProbe(config.processDir, tiers, abilities.loop),
    addressBlock: addressBlockOf(config),
    imagesDir: config.imagesDir,
    publicAddresses: createPublicAddresses(layoutOf(config.processDir).publicAddresses, publicBlockOf(config)),
    version,
    // Each machine of Incus has a root user and a separate network.
    lowPorts: config.provider === "incus" || abilities.isolation === "root",
  };
  const additions = await readAdditions((variable) => config[variable]);
  for (const { fault } of Object.values(additions))
    if (fault !== undefined) deps.log.warn("additions to images cannot be used", { reason: fault });
  const provider = await providerOf({ ...deps, tiers, abilities, additions });
  return {
    ...provider,
    async facts() {
      const signal = AbortSignal.timeout(factsTimeoutMs);
      const virtualMachineProblem = (await provider.virtualMachineRefusal(signal)) ?? "";
      return readHostFacts({
        ...facts,
        virtualMachineProblem,
        rootStorageOf: (tier) => provider.rootStorageOf(tier, signal),
      });
    },
  };
}

/** Time limit for a host's facts: a hanging daemon must not block them. */
const factsTimeoutMs = 5_000;

async function providerOf(
  deps: ProviderDeps & {
    readonly tiers: StorageTiers;
    readonly abilities: HostAbilities;
    readonly additions: Additions;
  },
): Promise<
  ComputeProvider & {
    virtualMachineRefusal(signal: AbortSignal): Promise<string | undefined>;
    rootStorageOf(tier: string, signal: AbortSignal): Promise<RootStorage | undefined>;
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
  const preparedDisks = { kinds: preparedEngines, count: config.preparedDisks };
  switch (config.provider) {
    case "process": {
      return createProcessProvider({ ...host, loopbackBlock: config.loopbackBlock, preparedDisks });
    }
    case "incus": {
      const provider = createIncusProvider({
        ...host,
        incus: await openIncus(config, log),
        addressBlock: config.incusAddressBlock,
        hostPorts: deps.hostPorts,
        pool: poolsOf(config),
        preparedDisks,
      });
      // A machine that is requested before the end waits for the same work, and reports its failure.
      provider
        .prepare(AbortSignal.timeout(prepareTimeoutMs))
        .catch((error: unknown) => log.warn("machines are not prepared", { error: String(error) }));
      return provider;
    }
    default:
      throw new Error(`HOLDFAST_PROVIDER: ${config.provider} is neither process nor incus`);
  }
}

const prepareTimeoutMs = 300_000;

/** Storage pool by tier for the machines' roots. Throws for an entry without a tier of this host, or without a pool. */
function poolsOf(config: ProviderSettings): (tier: string) => string {
  const { names } = readStorageTiers(config.storageTiers);
  const pools = new Map<string, string>();
  for (const entry of config.incusTierPools) {
    const [tier = "", pool = ""] = entry.split("=", 2);
    if (pool === "" || !names.includes(tier))
      throw new Error(
        `HOLDFAST_INCUS_TIER_POOLS: ${entry} is not TIER=POOL with a tier of HOLDFAST_STORAGE_TIERS (${names.join(", ")})`,
      );
    pools.set(tier, pool);
  }
  return (tier) => pools.get(tier) ?? config.incusPool;
}
