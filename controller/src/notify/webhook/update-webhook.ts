import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { UpdateWebhookRequest } from "@holdfast/proto/holdfast/v1/webhook_pb.ts";
import { checkedEvents, type KnownEventTypes } from "./check-webhook.ts";
import type { WebhookObject, WebhookSpec } from "./webhook.ts";
import { policyOf } from "./webhook-message.ts";
import { nextMetadata } from "#kernel/store/resource.ts";

/** Pure: applies the fields named by the mask; `url` is the checked one. Throws INVALID_REQUEST. */
export function updateWebhook(
  webhook: WebhookObject,
  request: UpdateWebhookRequest,
  { url, known }: { readonly url: string | undefined; readonly known: KnownEventTypes },
  now: number,
): WebhookObject {
  const paths = request.updateMask?.paths ?? [];
  if (paths.length === 0)
    throw invalid({ field: "update_mask", code: "required", detail: "must name at least one field" });
  let change: Partial<WebhookSpec> = {};
  for (const path of paths) change = { ...change, ...changeOf(path, request, url, known) };
  const { metadata, spec, status } = webhook;
  return {
    metadata: nextMetadata(metadata, now),
    spec: { ...spec, ...change },
    // What the user switches is no longer the platform's doing.
    status: change.active === undefined ? status : { ...status, disabledAt: null },
  };
}

function changeOf(
  path: string,
  request: UpdateWebhookRequest,
  url: string | undefined,
  known: KnownEventTypes,
): Partial<WebhookSpec> {
  const missing = () => invalid({ field: path, code: "not_clearable", detail: "must not be null" });
  switch (path) {
    case "url":
      if (url === undefined) throw missing();
      return { url };
    case "events":
      return { events: request.events === undefined ? null : checkedEvents(request.events.values, known) };
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
