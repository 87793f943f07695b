import type { EngineDeps } from "../../engine-deps.ts";
import type { ReplicationFacet } from "../../replication-facet.ts";
import { admit } from "./admit.ts";
import { confirm } from "./confirm.ts";
import { copy, dataOf } from "./copy.ts";
import { keepDiscarded } from "./discarded.ts";
import { needs } from "./needs.ts";
import { prepareStop } from "./prepare-stop.ts";
import { rewind, stoppedAt } from "./rewind.ts";
import { status } from "./status.ts";

/** Streaming replication: members sign in by certificate, each with a physical slot. */
export function createReplication(deps: EngineDeps): ReplicationFacet {
  return {
    dataOf,
    copy: (instance, signal) => copy(deps, instance, signal),
    rewind: (instance, signal) => rewind(deps, instance, signal),
    keepDiscarded: (instance, place, signal) => keepDiscarded(deps, instance, place, signal),
    admit,
    prepareStop,
    confirm,
    needs: (instance, signal) => needs(deps, instance, signal),
    stoppedAt: (instance, signal) => stoppedAt(deps, instance, signal),
    status,
  };
}
