import { existsSync } from "node:fs";
import type { EngineDeps } from "../engine-deps.ts";
import { EngineRefused } from "../engine-errors.ts";
import type { PeersFacet, PeersReport } from "../peers-facet.ts";
import { markForming, prepareDirectory } from "./bootstrap.ts";
import { readHealth } from "./figures.ts";
import { dataDirectory, ownNumber } from "./layout.ts";

/**
 * A cluster of one member, the only number that the catalog permits (`maximumNodes`): it is its own leader, and may
 * restart at any time.
 */
export function createPeers(deps: EngineDeps): PeersFacet {
  return {
    async formCluster(instance, signal) {
      await prepareDirectory(deps, instance, signal);
      // A member with data is in its cluster already.
      if (existsSync(dataDirectory(instance))) return;
      await markForming(deps, instance, signal);
    },

    join: () => Promise.reject(single()),
    leave: () => Promise.reject(single()),

    async report(instance, signal): Promise<PeersReport> {
      const number = ownNumber(instance);
      const { hasLeader, status } = await readHealth(instance, signal);
      return {
        isLeader: hasLeader,
        quorum: { voters: 1, reachable: hasLeader ? 1 : 0, hasMajority: hasLeader },
        inSync: hasLeader && status !== "red",
        members: [number],
        safeToRestart: [number],
        leaving: [],
      };
    },
  };
}

function single(): EngineRefused {
  return new EngineRefused("This release runs OpenSearch with one member only.", { code: "not_possible" });
}
