import type { Instance } from "../engine-driver.ts";
import { membersOf } from "../members.ts";
import { readPartitions } from "./cluster-view.ts";
import { heartbeatTopic } from "./heartbeat.ts";
import { isVisible } from "./layout.ts";
import {
  minInSync,
  defaultMinInSyncIsTwo,
  raiseMinInSync,
  raiseMinInSyncOfTransactions,
  runningReplicationFactor,
} from "./parameters.ts";
import type { Connection } from "./protocol/connection.ts";
import { raiseMoves, spreadMoves, startMoves } from "./reassignments.ts";
import { withMemberSession } from "./session.ts";
import { replicationFactorOf } from "./settings.ts";

/**
 * Places the partitions of a cluster after a change of its members.
 *
 * A cluster that grows from one broker to three gives each partition three replicas. The platform's own topic is the
 * last one and so marks, in the cluster's metadata, that this is done. Until the first broker has restarted, it creates
 * topics with one replica, and those are raised too. Later, users may have topics with fewer replicas.
 *
 * After that, brokers that have few replicas get more.
 */
export function createBalance(): (instance: Instance, session: Connection, signal: AbortSignal) => Promise<void> {
  /** Members and parameters for which all replication factors were raised already. */
  let raisedFor = "";

  return async (instance, session, signal) => {
    const numbers = membersOf(instance.spec).map(({ number }) => number);
    if (numbers.length < 2) return;
    const { brokers, partitions } = await readPartitions(session);
    const isPresent = numbers.every((number) => brokers.includes(number));
    // A broker that is down or recovers keeps its replicas.
    if (!isPresent || partitions.some(({ replicas, inSync }) => inSync.length < replicas.length)) return;
    const placement = { partitions, brokers: numbers };
    const factor = replicationFactorOf(instance);
    const raise = (isRaised: (topic: string) => boolean) => raiseMoves(placement, factor, isRaised);
    const raised = JSON.stringify([numbers, instance.spec.parameters[minInSync]]);
    if (raisedFor !== raised) {
      const isMarked = raise((topic) => topic === heartbeatTopic).length === 0;
      const isDefault = await everyBrokerHas(instance, factor, signal);
      const others = isMarked && isDefault ? [] : raise((topic) => topic !== heartbeatTopic);
      if (others.length > 0) return startMoves(session, others);
      if (isMarked && defaultMinInSyncIsTwo(instance)) {
        for (const { number, address } of membersOf(instance.spec))
          await withMemberSession(instance, address, signal, (at) => raiseMinInSync(at, number));
        await raiseMinInSyncOfTransactions(session);
      }
      if (isMarked && isDefault) raisedFor = raised;
    }
    const own = raise((topic) => !isVisible(topic));
    return startMoves(session, own.length > 0 ? own : spreadMoves(placement));
  };
}

/** True if each broker creates topics with this number of replicas, which it reads at its start. */
async function everyBrokerHas(instance: Instance, factor: number, signal: AbortSignal): Promise<boolean> {
  const reads = membersOf(instance.spec).map(({ number, address }) =>
    withMemberSession(instance, address, signal, (session) => runningReplicationFactor(session, number)),
  );
  const found = await Promise.allSettled(reads);
  return found.every((each) => each.status === "fulfilled" && each.value === factor);
}
