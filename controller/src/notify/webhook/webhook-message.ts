import { type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type DeliverySchema, RetryPolicy, type WebhookSchema } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import type { AttemptRecord } from "./deliveries.ts";
import type { RetryPolicyName } from "./retry-policy.ts";
import type { WebhookObject } from "./webhook.ts";

const policies = { standard: RetryPolicy.STANDARD, extended: RetryPolicy.EXTENDED } as const satisfies Record<
  RetryPolicyName,
  RetryPolicy
>;

/** The stored name of a retry policy. */
export function policyOf(policy: RetryPolicy): RetryPolicyName {
  return policy === RetryPolicy.EXTENDED ? "extended" : "standard";
}

const plainWarning = "Deliveries over http:// can be read in transit; use https:// where you can.";

/** The API message of an endpoint, without its secret. */
export function webhookMessage({
  metadata,
  spec,
  status,
}: WebhookObject): Omit<MessageInitShape<typeof WebhookSchema>, "$typeName"> {
  return {
    id: metadata.id,
    url: spec.url,
    ...(spec.events !== null && { events: { values: [...spec.events] } }),
    active: spec.active,
    retryPolicy: policies[spec.retryPolicy],
    ...(status.disabledAt !== null && { disabledAt: timestampFromMs(status.disabledAt) }),
    ...(spec.url.startsWith("http:") && { warning: plainWarning }),
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
  };
}

export function deliveryMessage(record: AttemptRecord): MessageInitShape<typeof DeliverySchema> {
  return { webhookId: record.webhookId, ...attemptFields(record) };
}

/** The fields of an attempt without the receiver's id, whose field has different names for webhooks and channels. */
export function attemptFields(record: AttemptRecord) {
  const { id, eventId, eventType, attempt, durationMs } = record;
  return {
    id,
    eventId,
    eventType,
    attempt,
    durationMs,
    ...(record.responseStatus !== null && { responseStatus: record.responseStatus }),
    ...(record.errorMessage !== null && { errorMessage: record.errorMessage }),
    ...(record.deliveredAt !== null && { deliveredAt: timestampFromMs(record.deliveredAt) }),
    createdAt: timestampFromMs(record.beganAt),
  };
}
