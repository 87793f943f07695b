import { existsSync } from "node:fs";
import type { EngineDeps } from "../engine-deps.ts";
import { membersOf } from "../members.ts";
import type { PeersFacet } from "../peers-facet.ts";
import { forgetForming, markForming, prepareDirectory } from "./bootstrap.ts";
import { readCluster, readShards } from "./cluster-view.ts";
import { readHealth } from "./figures.ts";
import { dataDirectory, ownNumber } from "./layout.ts";
import { admit, balance, drainsOf, leave } from "./membership.ts";
import { peersReportOf } from "./peers-report.ts";

/**
 * Members of a cluster, each of which has data, serves clients and may lead. The engine chooses those that vote: an
 * odd number of them. So that a member that is down remains one, the leader records their numbers (`recordMembers`).
 */
export function createPeers(deps: EngineDeps): PeersFacet {
  return {
    async formCluster(instance, signal) {
      await prepareDirectory(deps, instance, signal);
      // A member with restored data has its cluster.
      if (existsSync(dataDirectory(instance))) return;
      const numbers = membersOf(instance.spec).map(({ number }) => number);
      await markForming(deps, instance, numbers.length === 0 ? [ownNumber(instance)] : numbers, signal);
    },

    async join(instance, signal) {
      await prepareDirectory(deps, instance, signal);
      await forgetForming(deps, instance, signal);
      const data = dataDirectory(instance);
      await deps.runAsEngine(["rm", "-rf", data], { signal });
      await deps.runAsEngine(["mkdir", "-m", "0750", data], { signal });
    },

    admit,
    leave,
    balance,

    async report(instance, signal) {
      const [health, cluster] = await Promise.all([readHealth(instance, signal), readCluster(instance, signal)]);
      const { status, hasLeader, unsettledShards } = health;
      const isSettled = status === "green" && unsettledShards === 0;
      const report = peersReportOf({
        number: ownNumber(instance),
        leaving: instance.spec.peers?.leaving ?? [],
        cluster: hasLeader ? cluster : { ...cluster, leader: undefined },
        lacksData: status === "red",
        shards: isSettled ? [] : await readShards(instance, signal),
      });
      return { ...report, leaving: report.isLeader ? await drainsOf(instance, cluster, signal) : [] };
    },
  };
}
