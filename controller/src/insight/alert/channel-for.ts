import type { Collection } from "#kernel/store/collection.ts";
import type { Resource } from "#kernel/store/resource.ts";
import type { AlertRuleObject, AlertSettingsObject } from "./alert-rule.ts";

/** Answers the channel that a rule's alerts go to: its own, or the organization's default one; null for none. */
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
