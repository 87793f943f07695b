import type { Instance } from "../engine-driver.ts";
import { isReserved } from "./layout.ts";
import { listGroups, listOffsets, offsetFetch } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { requireSuccess } from "./protocol/protocol-error.ts";
import { withSession } from "./session.ts";

/** Timestamp that stands for the end of a partition. */
const latest = -1;
/** Groups of a call; each answer has the offsets of all their partitions. */
const groupsPerCall = 100;

/** A group's committed offset of a partition. */
export interface GroupOffset {
  readonly group: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

/** Messages that consumer groups of this broker have not consumed: the sum over all groups and partitions. */
export function consumerLag(instance: Instance, signal: AbortSignal): Promise<number> {
  return withSession(instance, signal, async (session) => {
    const committed = await committedOffsets(session);
    const ends = await endOffsets(session, committed);
    return committed.reduce((sum, { topic, partition, offset }) => {
      const end = ends.get(`${topic} ${partition}`);
      return end === undefined ? sum : sum + Math.max(end - offset, 0);
    }, 0);
  });
}

/** Offsets of all groups that this broker coordinates. */
async function committedOffsets(session: Connection): Promise<GroupOffset[]> {
  const listed = await session.call(listGroups, { states: [] });
  requireSuccess("ListGroups", listed);
  const ids = listed.groups.map(({ id }) => id).filter((id) => !isReserved(id));
  const offsets: GroupOffset[] = [];
  for (let at = 0; at < ids.length; at += groupsPerCall) {
    const groups = ids.slice(at, at + groupsPerCall).map((id) => ({ id, topics: null }));
    const answer = await session.call(offsetFetch, { groups, requireStable: false });
    for (const { id: group, topics } of answer.groups)
      for (const { name: topic, partitions } of topics)
        for (const { index: partition, offset } of partitions)
          if (offset >= 0) offsets.push({ group, topic, partition, offset });
  }
  return offsets;
}

/** Ends of these partitions, by topic and number; without those that this broker does not lead. */
async function endOffsets(session: Connection, of: readonly GroupOffset[]): Promise<Map<string, number>> {
  const byTopic = Map.groupBy(of, ({ topic }) => topic);
  if (byTopic.size === 0) return new Map();
  const topics = [...byTopic].map(([name, offsets]) => ({
    name,
    partitions: [...new Set(offsets.map(({ partition }) => partition))].map((index) => ({
      index,
      leaderEpoch: -1,
      timestamp: latest,
    })),
  }));
  const answer = await session.call(listOffsets, { replicaId: -1, isolationLevel: 0, topics });
  return new Map(
    answer.topics.flatMap(({ name, partitions }) =>
      partitions.flatMap(({ index, errorCode, offset }) =>
        errorCode === 0 ? [[`${name} ${index}`, offset] as const] : [],
      ),
    ),
  );
}
