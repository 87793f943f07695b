import { existsSync } from "node:fs";
import type { EngineDeps } from "../engine-deps.ts";
import type { Instance } from "../engine-driver.ts";
import { membersOf } from "../members.ts";
import type { PeersFacet } from "../peers-facet.ts";
import { createBalance } from "./balance.ts";
import { format } from "./bootstrap.ts";
import { type Quorum, readPartitions, readQuorum } from "./cluster-view.ts";
import { firstDirectoryId, ownNumber, portsOf, restoredFile } from "./layout.ts";
import { addVoter, describeLogDirs, removeVoter, unregisterBroker } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { errorCodes, requireSuccess } from "./protocol/protocol-error.ts";
import { drainMoves, startMoves } from "./reassignments.ts";
import { peersReportOf } from "./peers-report.ts";
import { withMemberSession, withSession } from "./session.ts";

const timeoutMs = 2_000;
const sizeTimeoutMs = 1_000;

/**
 * Members of a cluster in KRaft mode, each a broker and a controller. The first members are the first voters; later
 * ones read the metadata first, and then get a vote.
 */
export function createPeers(deps: EngineDeps): PeersFacet {
  const balance = createBalance();
  return {
    async formCluster(instance, signal) {
      // Restored topics are in a cluster of this member already.
      if (existsSync(restoredFile(instance))) return;
      const { controllers } = portsOf(instance);
      const voters = membersOf(instance.spec).map(
        ({ number, address }) => `${number}@${address}:${controllers}:${firstDirectoryId(instance, number)}`,
      );
      await format(deps, instance, ["--initial-controllers", voters.join()], signal);
    },

    join: (instance, signal) => format(deps, instance, ["--no-initial-controllers"], signal),

    admit: (instance, signal) =>
      withSession(instance, signal, async (session) => {
        const quorum = await readQuorum(instance, session);
        const number = ownNumber(instance);
        const own = quorum?.observers.find((each) => each.number === number);
        if (quorum === undefined || own === undefined) return;
        // The vote of a member whose disk was lost.
        await removeVote(session, quorum, number);
        const { address } = instance.spec;
        const listeners = [{ name: "CONTROLLERS", host: address, port: portsOf(instance).controllers }];
        const request = { clusterId: null, timeoutMs, voterId: number, directoryId: own.directoryId, listeners };
        requireSuccess("AddRaftVoter", await session.call(addVoter, request));
      }),

    leave: (instance, number, signal) =>
      withSession(instance, signal, async (session) => {
        const { brokers, partitions } = await readPartitions(session);
        if (partitions.some(({ replicas }) => replicas.includes(number)))
          return startMoves(session, drainMoves({ partitions, brokers: stayingOf(instance, brokers) }, number));
        const unregistered = await session.call(unregisterBroker, { brokerId: number });
        if (unregistered.errorCode !== errorCodes.brokerNotRegistered) requireSuccess("UnregisterBroker", unregistered);
        const quorum = await readQuorum(instance, session);
        if (quorum !== undefined) await removeVote(session, quorum, number);
      }),

    balance: (instance, signal) => withSession(instance, signal, (session) => balance(instance, session, signal)),

    report: (instance, signal) =>
      withSession(instance, signal, async (session) => {
        const [quorum, { brokers, partitions }] = await Promise.all([
          readQuorum(instance, session),
          readPartitions(session),
        ]);
        const number = ownNumber(instance);
        const numbers = instance.spec.peers?.leaving ?? [];
        const report = peersReportOf({ number, leaving: numbers, quorum, brokers, partitions });
        const leaving = report.isLeader ? await drainsOf(instance, report.members, signal) : [];
        return { ...report, leaving };
      }),
  };
}

async function removeVote(session: Connection, { voters }: Quorum, number: number): Promise<void> {
  const found = voters.find((each) => each.number === number);
  if (found === undefined) return;
  const request = { clusterId: null, voterId: number, directoryId: found.directoryId };
  requireSuccess("RemoveRaftVoter", await session.call(removeVoter, request));
}

/** Brokers that take part in the cluster and stay in it. */
function stayingOf({ spec }: Instance, brokers: readonly number[]): number[] {
  const leaving = spec.peers?.leaving ?? [];
  const numbers = membersOf(spec).flatMap(({ number }) => (leaving.includes(number) ? [] : [number]));
  return brokers.filter((number) => numbers.includes(number));
}

/** Members that leave, each with the bytes that it still has. */
function drainsOf(instance: Instance, members: readonly number[], signal: AbortSignal) {
  const leaving = membersOf(instance.spec).filter(
    ({ number }) => members.includes(number) && instance.spec.peers?.leaving.includes(number) === true,
  );
  return Promise.all(
    leaving.map(async ({ number, address }) => ({ number, remainingBytes: await bytesAt(instance, address, signal) })),
  );
}

/** Bytes of all partitions at a member; 0 if it does not respond. */
async function bytesAt(instance: Instance, address: string, signal: AbortSignal): Promise<number> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(sizeTimeoutMs)]);
  const read = withMemberSession(instance, address, limit, (session) =>
    session.call(describeLogDirs, { topics: null }),
  );
  const { directories } = await read.catch(() => ({ directories: [] }));
  const sizes = directories.flatMap(({ topics }) => topics.flatMap(({ partitions }) => partitions));
  return sizes.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
}
