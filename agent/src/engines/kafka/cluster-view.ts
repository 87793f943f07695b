import type { Instance } from "../engine-driver.ts";
import { membersOf } from "../members.ts";
import { describeQuorum, metadata } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { requireSuccess } from "./protocol/protocol-error.ts";

/** Topic of the cluster's metadata, whose replicas are the quorum. */
const metadataTopic = "__cluster_metadata";
/** Time without a fetch of the metadata after which a member counts as unreachable. */
const silentMs = 4_000;

/** A member of the quorum, or one that reads the metadata without a vote. */
export interface QuorumMember {
  readonly number: number;
  /** Id of its log directory: a member that joins again after the loss of its disk has another one. */
  readonly directoryId: string;
  readonly isReachable: boolean;
}

export interface Partition {
  readonly topic: string;
  /** A topic that is deleted and created again has another one. */
  readonly topicId: string;
  readonly index: number;
  /** Number of the broker that leads it; negative without one. */
  readonly leader: number;
  readonly replicas: readonly number[];
  readonly inSync: readonly number[];
}

/** The cluster's quorum, as its leader reports it; undefined without a leader. */
export interface Quorum {
  readonly leader: number;
  readonly voters: readonly QuorumMember[];
  /** Members of the service that do not vote, with a voter's number if that voter's disk was lost. */
  readonly observers: readonly QuorumMember[];
}

export async function readQuorum(instance: Instance, session: Connection): Promise<Quorum | undefined> {
  const topics = [{ name: metadataTopic, partitions: [{ index: 0 }] }];
  const answer = await session.call(describeQuorum, { topics });
  requireSuccess("DescribeQuorum", answer);
  const found = answer.topics[0]?.partitions[0];
  if (found === undefined || found.errorCode !== 0 || found.leader < 0) return undefined;
  const { leader } = found;
  // Times of the leader's clock, whose own is the newest.
  const now = Math.max(...found.voters.map(({ lastFetchMs }) => lastFetchMs));
  const memberOf = ({ id, directoryId, lastFetchMs }: (typeof found.voters)[number]): QuorumMember => ({
    number: id,
    directoryId,
    isReachable: id === leader || now - lastFetchMs <= silentMs,
  });
  const numbers = membersOf(instance.spec).map(({ number }) => number);
  const observers = found.observers.map(memberOf);
  return {
    leader,
    voters: found.voters.map(memberOf),
    observers: observers.filter(({ number, isReachable }) => isReachable && numbers.includes(number)),
  };
}

/** All partitions, and the numbers of the brokers that take part in the cluster now. */
export async function readPartitions(
  session: Connection,
): Promise<{ readonly brokers: readonly number[]; readonly partitions: readonly Partition[] }> {
  const request = { topics: null, allowAutoCreation: false, includeAuthorizedOperations: false };
  const { brokers, topics } = await session.call(metadata, request);
  const partitions = topics.flatMap(({ name, id: topicId, partitions: all }) =>
    all.map(({ index, leader, replicas, inSync }) => ({ topic: name ?? "", topicId, index, leader, replicas, inSync })),
  );
  return { brokers: brokers.map(({ id }) => id), partitions };
}
