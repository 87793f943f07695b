import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Collection } from "../store/collection.ts";
import { type WebhookObject, webhooksMax } from "./webhook.ts";

/**
 * Places that the organization has free. An endpoint claims its place as its name, so that no two requests, on whatever
 * replica, make one too many. Throws WEBHOOK_LIMIT_REACHED when there is none.
 */
export function freePlaces(webhooks: Collection<WebhookObject>, organizationId: string): string[] {
  const { items } = webhooks.page(() => true, { after: undefined, limit: webhooksMax, organizationId });
  const taken = new Set(items.map(({ object }) => object.metadata.name));
  const free = Array.from({ length: webhooksMax }, (_, place) => String(place)).filter((place) => !taken.has(place));
  if (free.length === 0)
    throw new HoldfastError("WEBHOOK_LIMIT_REACHED", `An organization can have ${webhooksMax} webhooks.`);
  return free;
}
