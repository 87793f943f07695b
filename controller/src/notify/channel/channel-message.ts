import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type ChannelDeliverySchema, type ChannelSchema, ChannelType } from "@holdfast/proto/holdfast/v1/channel_pb.ts";
import type { AttemptRecord } from "../webhook/deliveries.ts";
import { attemptFields } from "../webhook/webhook-message.ts";
import { secretMask } from "#kernel/secrets/destined-secret.ts";
import type { ChannelObject, ChannelSpec, ChannelStatus } from "./channel.ts";

const plainWarning = "Alerts over http:// can be read in transit; use https:// where you can.";
const unconfirmedWarning = "The address gets no alerts until its holder confirms it by the link that was sent to it.";

/** The API message of a channel. Only the response to its creation has the secret. */
export function channelMessage(
  { metadata, spec, status }: ChannelObject,
  secret: string = secretMask,
): Omit<MessageInitShape<typeof ChannelSchema>, "$typeName"> {
  const warning = warningOf(spec, status);
  return {
    id: metadata.id,
    name: metadata.name,
    type: spec.type === "webhook" ? ChannelType.WEBHOOK : ChannelType.EMAIL,
    config: spec.type === "webhook" ? { url: spec.url, secret } : { address: spec.address },
    ...(status.confirmedAt !== null && { confirmedAt: timestampFromMs(status.confirmedAt) }),
    ...(warning !== undefined && { warning }),
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
  };
}

function warningOf(spec: ChannelSpec, { confirmedAt }: ChannelStatus): string | undefined {
  if (spec.type === "webhook") return spec.url.startsWith("http:") ? plainWarning : undefined;
  return confirmedAt === null ? unconfirmedWarning : undefined;
}

export function channelDeliveryMessage(record: AttemptRecord): MessageInitShape<typeof ChannelDeliverySchema> {
  return { channelId: record.webhookId, ...attemptFields(record) };
}
