import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { UpdateWebhookRequest } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { checkedEvents, type EventTypeNames } from "./check-webhook.ts";
import type { WebhookObject, WebhookSpec } from "./webhook.ts";
import { policyOf } from "./webhook-message.ts";
import { nextMetadata } from "#kernel/store/resource.ts";

/** Applies the fields of the mask; `url` is the validated URL of the request. Throws INVALID_REQUEST. */
export function updateWebhook(
  webhook: WebhookObject,
  request: UpdateWebhookRequest,
  { url, eventTypes }: { readonly url: string | undefined; readonly eventTypes: EventTypeNames },
  now: number,
): WebhookObject {
  const paths = request.updateMask?.paths ?? [];
  if (paths.length === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  let change: Partial<WebhookSpec> = {};
  for (const path of paths) change = { ...change, ...changeOf(path, request, url, eventTypes) };
  const { metadata, spec, status } = webhook;
  return {
    metadata: nextMetadata(metadata, now),
    spec: { ...spec, ...change },
    // A change of `active` by a user clears the time at which the platform disabled the endpoint.
    status: change.active === undefined ? status : { ...status, disabledAt: null },
  };
}

function changeOf(
  path: string,
  request: UpdateWebhookRequest,
  url: string | undefined,
  eventTypes: EventTypeNames,
): Partial<WebhookSpec> {
  const missing = () => invalid({ field: path, code: "not_clearable", detail: "must not be null" });
  switch (path) {
    case "url":
      if (url === undefined) throw missing();
      return { url };
    case "events":
      return { events: request.events === undefined ? null : checkedEvents(request.events.values, eventTypes) };
    case "active":
      if (request.active === undefined) throw missing();
      return { active: request.active };
    case "retry_policy":
      if (request.retryPolicy === undefined) throw missing();
      return { retryPolicy: policyOf(request.retryPolicy) };
    default:
      throw new HoldfastError("INVALID_REQUEST", `update_mask names ${path}, which cannot be changed.`, {
        errors: [{ field: "update_mask", pointer: "/update_mask", code: "unknown_field", detail: `has ${path}` }],
      });
  }
}
