import { EngineBusy } from "../engine-errors.ts";
import type { Instance } from "../instance.ts";
import { readPartitions } from "./cluster-view.ts";
import { platform } from "./layout.ts";
import { findCoordinator, offsetFetch } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { isTransient, requireSuccess } from "./protocol/protocol-error.ts";
import { addressOfBroker, isResponding, withMemberSession, withSession } from "./session.ts";
import { internalPartitions } from "./settings.ts";

/** FindCoordinatorRequest.CoordinatorType.GROUP. */
const groupType = 0;
/** No other broker has the groups of one that is slow. */
const respondsWithinMs = 4_000;
/** Topic of the groups; the leader of a partition coordinates the groups in it. */
const offsetsTopic = "__consumer_offsets";

/**
 * Creates the topic of consumer groups' offsets, which Kafka otherwise creates for the first consumer, and throws a
 * transient error until this broker has loaded each of its partitions. Clients then find their coordinator at their
 * first attempt.
 */
export async function loadCoordinators(session: Connection, number: number): Promise<void> {
  const found = await session.call(findCoordinator, { keyType: groupType, keys: groupOfEachPartition() });
  for (const result of found.coordinators) requireSuccess("FindCoordinator", result);
  const groups = found.coordinators
    .filter(({ nodeId }) => nodeId === number)
    .map(({ key }) => ({ id: key, topics: null }));
  if (groups.length === 0) return;
  const fetched = await session.call(offsetFetch, { groups, requireStable: false });
  for (const result of fetched.groups) requireSuccess("OffsetFetch", result);
}

/**
 * Sessions at all brokers that coordinate groups, so that the work sees every group once. Throws EngineBusy if one of
 * them does not respond, or if groups moved to another broker during the work: a group would be missing, and would look
 * like one that was deleted.
 */
export function withCoordinators<T>(
  instance: Instance,
  signal: AbortSignal,
  work: (coordinators: readonly Connection[]) => Promise<T>,
): Promise<T> {
  return withSession(instance, signal, async (own) => {
    const before = await coordinatorsOf(own);
    const open = async ([number, ...more]: readonly number[], sessions: readonly Connection[]): Promise<T> => {
      if (number === undefined) return work(sessions);
      const address = addressOfBroker(instance, number);
      if (address === undefined) throw moving();
      return withMemberSession(instance, address, signal, async (session) => {
        if (!(await isResponding(session, respondsWithinMs))) throw moving();
        return open(more, [...sessions, session]);
      });
    };
    try {
      const result = await open([...new Set(before)], []);
      if ((await coordinatorsOf(own)).join() !== before.join()) throw moving();
      return result;
    } catch (error) {
      throw isTransient(error) ? moving(error) : error;
    }
  });
}

/** Numbers of the brokers that coordinate the groups of each partition. Empty before the first group. */
async function coordinatorsOf(session: Connection): Promise<number[]> {
  const { partitions } = await readPartitions(session);
  const found = partitions.filter(({ topic }) => topic === offsetsTopic).toSorted((a, b) => a.index - b.index);
  if (found.some(({ leader }) => leader < 0)) throw moving();
  return found.map(({ leader }) => leader);
}

function moving(cause?: unknown): EngineBusy {
  return new EngineBusy("A broker of consumer groups does not respond, or others take over its groups. Try again.", {
    cause,
  });
}

/** One name for each partition: Java's hash code of a text grows by one with its last character. */
function groupOfEachPartition(): string[] {
  const first = "A".codePointAt(0) ?? 0;
  return Array.from(
    { length: Number(internalPartitions) },
    (_, index) => `${platform}${String.fromCodePoint(first + index)}`,
  );
}
