import type { ErrorEntry } from "./error-entry.ts";

/** Errors of webhooks. */
// biome-ignore format: a table, aligned so that it reads as one
export const notifyErrors = {
  WEBHOOK_NOT_FOUND:        { grpc: "NOT_FOUND",           status: 404, title: "No such webhook",                       help: "It does not exist or belongs to another organization. List the webhooks to see their ids." },
  DELIVERY_NOT_FOUND:       { grpc: "NOT_FOUND",           status: 404, title: "No such delivery",                      help: "Deliveries are available for 30 days. List those of the webhook to see their ids." },
  WEBHOOK_LIMIT_REACHED:    { grpc: "RESOURCE_EXHAUSTED",  status: 409, title: "The limit of webhooks is reached",      help: "Delete an unused webhook, or contact an operator. used, asked and limit are the current, the requested and the largest number." },
} as const satisfies Record<string, ErrorEntry>;
