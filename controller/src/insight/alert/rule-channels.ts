import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { organizationOf } from "#access/caller.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import type { Resource, Stored } from "#kernel/store/resource.ts";
import { channelKind, type ChannelObject } from "#notify/channel/channel.ts";
import type { AlertRuleObject, AlertSettingsObject } from "./alert-rule.ts";

/**
 * Returns a function that selects the channel of a rule: the channel that it names, or the organization's default
 * channel; null without one.
 */
export function createChannelFor({
  channels,
  alertSettings,
}: {
  readonly channels: Pick<Collection<Resource<unknown, unknown>>, "get">;
  readonly alertSettings: Pick<Collection<AlertSettingsObject>, "get">;
}): (rule: AlertRuleObject) => string | null {
  return ({ metadata: { organizationId }, spec }) => {
    const id = spec.channelId ?? alertSettings.get(organizationId)?.object.spec.defaultChannelId ?? null;
    const channel = id === null ? undefined : channels.get(id);
    return channel?.object.metadata.organizationId === organizationId ? id : null;
  };
}

/**
 * Returns a function that lists the references to a channel: ids of rules, and `default-channel`. A transaction that
 * refers to a channel also writes the channel (`referenceChannel`), so all references up to the channel's revision are
 * in memory.
 */
export function createChannelUsers({
  rules,
  alertSettings,
}: {
  readonly rules: Pick<Collection<AlertRuleObject>, "page" | "untilRevision">;
  readonly alertSettings: Pick<Collection<AlertSettingsObject>, "get" | "untilRevision">;
}): (channel: Stored<ChannelObject>) => Promise<readonly string[]> {
  return async ({ object, modRevision }) => {
    const { id: channelId, organizationId } = object.metadata;
    await Promise.all([rules, alertSettings].map((memory) => memory.untilRevision(modRevision, 1_000)));
    const referring = ofOrganization(rules, organizationId).filter(({ spec }) => spec.channelId === channelId);
    const isDefault = alertSettings.get(organizationId)?.object.spec.defaultChannelId === channelId;
    return [...referring.map(({ metadata }) => metadata.id), ...(isDefault ? ["default-channel"] : [])];
  };
}

/**
 * Checks the channel that a unit of work refers to. The transaction also writes the channel unchanged, so that a
 * concurrent deletion of it conflicts. Throws OBJECT_NOT_FOUND for a channel of another organization.
 */
export function referenceChannel(
  unit: Changes,
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
