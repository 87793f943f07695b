import type { EngineDeps } from "../../engine-deps.ts";
import type { ReplicationFacet } from "../../replication-facet.ts";
import { admit } from "./admit.ts";
import { confirm } from "./confirm.ts";
import { copy, dataOf, follow } from "./follower-files.ts";
import { status } from "./status.ts";
import { prepareStop, stoppedAt } from "./yield.ts";

/** Replication of valkey itself, by the peer way. It has no rewind: a primary of before gets the whole data again. */
export function createReplication(deps: EngineDeps): ReplicationFacet {
  return {
    dataOf,
    copy: (instance, signal) => copy(deps, instance, signal),
    rewind: follow,
    admit,
    prepareStop,
    confirm,
    stoppedAt,
    status,
  };
}
