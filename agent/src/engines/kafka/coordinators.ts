import { platform } from "./layout.ts";
import { findCoordinator, offsetFetch } from "./protocol/apis.ts";
import type { Connection } from "./protocol/connection.ts";
import { requireSuccess } from "./protocol/protocol-error.ts";
import { internalPartitions } from "./settings.ts";

/** FindCoordinatorRequest.CoordinatorType.GROUP. */
const groupType = 0;

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

/** One name for each partition: Java's hash code of a text grows by one with its last character. */
function groupOfEachPartition(): string[] {
  const first = "A".codePointAt(0) ?? 0;
  return Array.from(
    { length: Number(internalPartitions) },
    (_, index) => `${platform}${String.fromCodePoint(first + index)}`,
  );
}
