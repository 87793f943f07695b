import {
  type CreateWebhookRequestSchema,
  type UpdateWebhookRequestSchema,
  WebhookService,
} from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { callerScoped, casesOf, type Contract, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/contract/contract.ts" {
  interface Existing {
    readonly webhookId: string;
  }
}

const webhook = objectScoped(({ webhookId }) => ({ id: webhookId }));

export default {
  authorization: [
    casesOf(WebhookService, {
      createWebhook: callerScoped(() => ({ url: "https://192.0.2.1/" })),
      listWebhooks: ofCaller,
      getWebhook: webhook,
      updateWebhook: objectScoped(({ webhookId }) => ({ id: webhookId, active: false })),
      deleteWebhook: webhook,
      testWebhook: webhook,
      rotateSecret: webhook,
      listDeliveries: webhook,
      redeliver: objectScoped(({ webhookId }) => ({ id: webhookId, delivery_id: webhookId })),
    }),
  ],
  existing: async ({ make, marker }) => ({
    webhookId: (await make("/webhooks", { url: `https://1.1.1.1/${marker}` })).id,
  }),
  sdk: [
    sdkCalls(WebhookService, {
      createWebhook: (c) => c.webhooks.create({ url: "u", events: [], retry_policy: "standard" }),
      listWebhooks: (c) => c.webhooks.list(page),
      getWebhook: (c) => c.webhooks.get("i"),
      updateWebhook: (c) => c.webhooks.update("i", { url: "u", events: null, active: true, retry_policy: "extended" }),
      deleteWebhook: (c) => c.webhooks.delete("i"),
      testWebhook: (c) => c.webhooks.test("i"),
      rotateSecret: (c) => c.webhooks.rotateSecret("i", 1),
      listDeliveries: (c) => c.webhooks.deliveries("i"),
      redeliver: (c) => c.webhooks.redeliver("i", "d"),
    }),
  ],
  sdkInputs: sameInputs<{
    newWebhook: SameInput<sdk.NewWebhook, typeof CreateWebhookRequestSchema>;
    webhookChange: SameInput<sdk.WebhookChange, typeof UpdateWebhookRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.EventTypeList.values": "the catalog of events",
    "holdfast.v1.ListDeliveriesResponse.deliveries": "100",
  },
} satisfies Contract;
