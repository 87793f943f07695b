import { type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type DeliverySchema, RetryPolicy, type WebhookSchema } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import type { AttemptRecord } from "./attempt-record.ts";
import type { RetryPolicyName } from "./retry-policy.ts";
import type { WebhookObject } from "./webhook.ts";

const policies = { standard: RetryPolicy.STANDARD, extended: RetryPolicy.EXTENDED } as const satisfies Record<
  RetryPolicyName,
  RetryPolicy
>;

/** Name of the policy in the store. */
export function policyOf(policy: RetryPolicy): RetryPolicyName {
  return policy === RetryPolicy.EXTENDED ? "extended" : "standard";
}

const plainWarning = "Deliveries over http:// can be read by others on the way; use https:// where you can.";

/** An endpoint as the API shows it: never with its secret. */
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

/** Fields of an attempt in the API, but for the endpoint: webhooks and channels name it by other fields. */
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
