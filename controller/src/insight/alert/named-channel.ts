import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { organizationOf } from "#access/caller.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { channelKind, type ChannelObject } from "#notify/channel/channel.ts";

/**
 * The channel that a unit of work names from now on: the same transaction writes it again as it is, so that its deletion, which
 * may have begun, sees that it is named. Throws OBJECT_NOT_FOUND for another organization's.
 */
export function nameChannel(
  unit: UnitOfWork,
  channels: Pick<Collection<ChannelObject>, "get">,
  id: string | undefined,
  call: Call,
): string | null {
  if (id === undefined) return null;
  const channel = channels.get(id);
  if (channel === undefined || channel.object.metadata.organizationId !== organizationOf(call))
    throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such channel in the organization.");
  unit.update(channelKind, channel, channel.object);
  return id;
}
