import { create } from "@bufbuild/protobuf";
import type { Handlers } from "@holdfast/common/call.ts";
import { type AlertService, DefaultChannelSchema } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { auditOf, commitAndSee, organizationOf, requireUnlimited } from "#access/caller.ts";
import { newMetadata, nextMetadata } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { AlertApiDeps } from "./alert-api-deps.ts";
import { alertSettingsKind } from "./alert-rule.ts";
import { nameChannel } from "./named-channel.ts";

/** The channel of rules that name none. */
export function createDefaultChannelHandlers({
  alertSettings,
  channels,
  clock,
  ...deps
}: AlertApiDeps): Pick<Handlers<typeof AlertService>, "getDefaultChannel" | "setDefaultChannel"> {
  return {
    getDefaultChannel: async (_, call) => {
      const channelId = alertSettings.get(organizationOf(call))?.object.spec.defaultChannelId ?? undefined;
      return channelId === undefined ? {} : { channelId };
    },

    setDefaultChannel: ({ channelId }, call) => {
      requireUnlimited(call);
      const organizationId = organizationOf(call);
      return retryConflict(call.signal, async () => {
        const unit = deps.begin();
        const spec = { defaultChannelId: nameChannel(unit, channels, channelId, call) };
        const now = clock.now();
        const before = alertSettings.get(organizationId);
        const answer = create(DefaultChannelSchema, channelId === undefined ? {} : { channelId });
        if (before === undefined)
          unit.create(alertSettingsKind, {
            metadata: newMetadata(organizationId, now, { organizationId }),
            spec,
            status: {},
          });
        else
          unit.update(alertSettingsKind, before, {
            ...before.object,
            metadata: nextMetadata(before.object.metadata, now),
            spec,
          });
        unit.audit(auditOf(call, "alert-settings.update", "alert-settings", organizationId));
        unit.answer(call, answer);
        await commitAndSee(call, unit, [alertSettings]);
        return answer;
      });
    },
  };
}
