import type { Changes } from "#kernel/store/unit-of-work.ts";
import { consumersOf, type ServiceConsumers } from "../../service/service-consumers.ts";
import type { UndeleteRecord } from "../archive/archive.ts";

/**
 * The users of a deleted service without the keys of attachments that have ended since its deletion. The transaction
 * fails if another attachment ends before its commit. `modRevision`: a revision of the store after the deletion.
 */
export async function attachedUsers(
  unit: Pick<Changes, "onlyWhile">,
  { service, users }: Pick<UndeleteRecord, "service" | "users">,
  modRevision: bigint,
  kinds: readonly ServiceConsumers[],
): Promise<UndeleteRecord["users"]> {
  if (users.every(({ spec }) => spec.key?.consumerId === undefined)) return users;
  const consumers = await consumersOf(kinds, service.metadata, modRevision);
  for (const consumer of consumers) unit.onlyWhile({ key: consumer.key, modRevision: consumer.modRevision });
  const attached = new Set(consumers.map(({ attachmentId }) => attachmentId));
  return users.filter(({ spec: { key } }) => key?.consumerId === undefined || attached.has(key.consumerId));
}
