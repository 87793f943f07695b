import type { EngineDeps } from "../engine-deps.ts";
import type { PeersFacet } from "../peers-facet.ts";
import { format } from "./bootstrap.ts";
import { ownNumber } from "./layout.ts";
import { describeQuorum } from "./protocol/apis.ts";
import { requireSuccess } from "./protocol/protocol-error.ts";
import { withSession } from "./session.ts";

const metadataTopic = "__cluster_metadata";

/** Membership of a broker that is the only member of its cluster. */
export function createPeers(deps: EngineDeps): PeersFacet {
  return {
    formCluster: (instance, signal) => format(deps, instance, ["--standalone"], signal),
    join: () => Promise.reject(new Error("A service of Kafka has one node in this version.")),
    leave: () => Promise.reject(new Error("A service of Kafka has one node in this version.")),
    report: (instance, signal) =>
      withSession(instance, signal, async (session) => {
        const topics = [{ name: metadataTopic, partitions: [{ index: 0 }] }];
        const answer = await session.call(describeQuorum, { topics });
        requireSuccess("DescribeQuorum", answer);
        const found = answer.topics[0]?.partitions[0];
        const own = ownNumber(instance);
        const voters = found?.voters.map(({ id }) => id) ?? [];
        const hasMajority = found !== undefined && found.leader >= 0;
        return {
          isLeader: hasMajority && found.leader === own,
          quorum: { voters: voters.length, reachable: hasMajority ? voters.length : 0, hasMajority },
          inSync: hasMajority,
          members: voters,
          joining: [],
          safeToRestart: voters.length === 1 ? voters : [],
          leaving: [],
        };
      }),
  };
}
