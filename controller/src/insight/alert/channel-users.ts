import { ofOrganization } from "#kernel/store/of-organization.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ChannelObject } from "#notify/channel/channel.ts";
import type { AlertRuleObject, AlertSettingsObject } from "./alert-rule.ts";

/**
 * Answers what names a channel: ids of rules, and `default-channel`. Whoever names it writes it again, so what was written up to the
 * channel's own revision is all that there is.
 */
export function createChannelUsers({
  rules,
  alertSettings,
}: {
  readonly rules: Pick<Collection<AlertRuleObject>, "page" | "reached">;
  readonly alertSettings: Pick<Collection<AlertSettingsObject>, "get" | "reached">;
}): (channel: Stored<ChannelObject>) => Promise<readonly string[]> {
  return async ({ object, modRevision }) => {
    const { id: channelId, organizationId } = object.metadata;
    await Promise.all([rules, alertSettings].map((memory) => memory.reached(modRevision, 1_000)));
    const naming = ofOrganization(rules, organizationId).filter(({ spec }) => spec.channelId === channelId);
    const isDefault = alertSettings.get(organizationId)?.object.spec.defaultChannelId === channelId;
    return [...naming.map(({ metadata }) => metadata.id), ...(isDefault ? ["default-channel"] : [])];
  };
}
