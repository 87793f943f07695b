import { type Form, formatForm } from "@holdfast/gateway/openapi/forms.ts";
import {
  CreateChannelRequestSchema,
  NewChannelConfigSchema,
  UpdateChannelRequestSchema,
} from "@holdfast/proto/holdfast/v1/channel_pb.ts";
import { CreateWebhookRequestSchema, UpdateWebhookRequestSchema } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { targetForm } from "@holdfast/egress/target.ts";

const ofWebhook = { required: ["url"], properties: { address: false } };
const ofMail = { required: ["address"], properties: { url: false } };

/** Events are those of this version; the config of a channel has the one member of its type. */
export function notifyForms(eventTypes: Iterable<string>): readonly Form[] {
  const event = { enum: [...eventTypes] };
  return [
    [CreateWebhookRequestSchema.field.url, targetForm],
    [UpdateWebhookRequestSchema.field.url, targetForm],
    [CreateWebhookRequestSchema.field.events, event],
    [UpdateWebhookRequestSchema.field.events, event],
    [NewChannelConfigSchema.field.url, targetForm],
    [NewChannelConfigSchema.field.address, formatForm("email")],
    [
      CreateChannelRequestSchema,
      {
        oneOf: [
          { properties: { type: { const: "webhook" }, config: ofWebhook } },
          { properties: { type: { const: "email" }, config: ofMail } },
        ],
      },
    ],
    [UpdateChannelRequestSchema.field.config, { oneOf: [ofWebhook, ofMail] }],
  ];
}
