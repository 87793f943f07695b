import type { NewToken } from "@holdfast/sdk/requests.ts";
import type { Token } from "@holdfast/sdk/responses.ts";

/** The input of the form for a token. */
export interface TokenInput {
  readonly scopes: readonly string[];
  /** Lifetime in seconds. */
  readonly lifetime: string;
  /** Id of the only service that the token may access; empty for all. */
  readonly service: string;
}

export const lifetimes: readonly (readonly [seconds: string, text: string])[] = [
  ["600", "10 minutes"],
  ["3600", "An hour"],
  ["86400", "A day"],
  ["604800", "A week"],
  ["2592000", "30 days"],
  ["31536000", "A year"],
];

export function newTokenOf({ scopes, lifetime, service }: TokenInput): NewToken {
  return {
    scopes,
    ttl_seconds: Number(lifetime),
    ...(service !== "" && { resources: [{ kind: "managed-service", id: service }] }),
  };
}

/** Objects that a token may access: "everything", a number of services, or "nothing". */
export function accessText({ is_limited: isLimited, resources }: Pick<Token, "is_limited" | "resources">): string {
  if (!isLimited) return "everything";
  if (resources.length === 0) return "nothing";
  return resources.length === 1 ? "1 service" : `${resources.length} services`;
}

/** The scope that a user needs to delete a token: their own tokens need less. */
export function deletionScope({ created_by: creator }: Pick<Token, "created_by">, userId: string): string {
  return creator === `user:${userId}` ? "keys:read" : "keys:write";
}
