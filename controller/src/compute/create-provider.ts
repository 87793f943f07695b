import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ControllerConfig } from "../config.ts";
import type { ComputeProvider } from "./compute-provider.ts";
import { createIncusClient } from "./incus/incus-client.ts";
import { createIncusProvider } from "./incus/incus-provider.ts";
import { detectAbilities } from "./host/host-abilities.ts";
import { readStorageTiers } from "./host/storage-tiers.ts";
import { preparedEngines } from "./process/prepared-engines.ts";
import { createProcessProvider } from "./process/process-provider.ts";

export interface ProviderDeps {
  readonly config: ControllerConfig;
  /** Code of the platform: the workspace's root. */
  readonly checkout: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly log: Log;
}

/** The provider that the settings name. `close` ends what runs in the background here; machines go on. */
export async function createProvider(deps: ProviderDeps): Promise<ComputeProvider & { close(): Promise<void> }> {
  const { config, log } = deps;
  const tiers = readStorageTiers(config.storageTiers);
  const host = {
    ...deps,
    tiers,
    directory: config.processDir,
    imagesDir: config.imagesDir,
    node: process.execPath,
    abilities: await detectAbilities(),
  };
  const spares = { kinds: preparedEngines, count: config.spares };
  switch (config.provider) {
    case "process": {
      return createProcessProvider({ ...host, loopbackBlock: config.loopbackBlock, spares });
    }
    case "incus": {
      const provider = createIncusProvider({
        ...host,
        incus: createIncusClient({ socket: config.incusSocket, project: config.incusProject }),
        addressBlock: config.incusAddressBlock,
        hostPorts: [config.agentListen, ...config.dnsServers].map((listener) => Number(listener.split(":").at(-1))),
        pool: poolsOf(config),
        memoryOvercommit: config.memoryOvercommit,
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

/** The pool for the roots of each tier's machines. */
function poolsOf({ incusPool, incusTierPools }: ControllerConfig): (tier: string) => string {
  const pools = new Map(incusTierPools.map((entry) => entry.split("=", 2) as [string, string]));
  return (tier) => pools.get(tier) ?? incusPool;
}
