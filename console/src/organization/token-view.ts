import type { NewToken } from "@holdfast/sdk/requests.ts";
import type { ManagedService, Token } from "@holdfast/sdk/responses.ts";

/** The input of the form for a token. */
export interface TokenInput {
  readonly scopes: readonly string[];
  /** Lifetime in seconds. */
  readonly lifetime: string;
  /** "services" for a token of some services alone; empty for one of all objects of the organization. */
  readonly limit: "" | "services";
  /** Ids of the services that a limited token may access. */
  readonly services: readonly string[];
}

export const lifetimes: readonly (readonly [seconds: string, text: string])[] = [
  ["600", "10 minutes"],
  ["3600", "An hour"],
  ["86400", "A day"],
  ["604800", "A week"],
  ["2592000", "30 days"],
  ["31536000", "A year"],
];

const servicesScopes = ["services:*", "services:read", "services:write", "services:data", "services:secrets"];

/**
 * Scopes of the user that a new credential can have. A token that is limited to services has scopes of services alone,
 * which are listed one by one for a user who has all.
 */
export function possibleScopes(limit: TokenInput["limit"], scopes: readonly string[]): readonly string[] {
  if (limit === "") return scopes.filter((scope) => !scope.startsWith("platform:"));
  return servicesScopes.filter((scope) => scopes.includes("services:*") || scopes.includes(scope));
}

/** The reason why the form cannot be sent; undefined if it can. */
export function tokenFault({ limit, services }: TokenInput): string | undefined {
  return limit !== "" && services.length === 0 ? "Select the services that the token may access." : undefined;
}

export function newTokenOf({ scopes, lifetime, limit, services }: TokenInput): NewToken {
  return {
    scopes: limit === "" ? scopes : scopes.filter((scope) => scope.startsWith("services:")),
    ttl_seconds: Number(lifetime),
    ...(limit !== "" && { resources: services.map((id) => ({ kind: "managed-service", id }) as const) }),
  };
}

/** Objects that a token may access. */
type TokenAccess =
  | { readonly kind: "everything" }
  | {
      readonly kind: "limited";
      /** Services that it sees; the name is undefined for one that is not among those of the organization. */
      readonly sees: readonly { readonly id: string; readonly name: string | undefined }[];
      /** "bills, cache and 3 more services, and everything else of the organization". */
      readonly lacks: string;
    };

const namedServices = 3;

/** The access of a token, with names of services; `services` are all services that the user sees. */
export function accessOf(
  { is_limited: isLimited, resources }: Pick<Token, "is_limited" | "resources">,
  services: readonly Pick<ManagedService, "id" | "name">[],
): TokenAccess {
  if (!isLimited) return { kind: "everything" };
  const ids = new Set(resources.map(({ id }) => id));
  const others = services.filter(({ id }) => !ids.has(id)).map(({ name }) => name);
  const named = others.slice(0, namedServices);
  const more = others.length - named.length;
  const parts = [...named, ...(more === 0 ? [] : [`${more} more ${more === 1 ? "service" : "services"}`])];
  return {
    kind: "limited",
    sees: resources.map(({ id }) => ({ id, name: services.find((service) => service.id === id)?.name })),
    lacks: [...parts, "everything else of the organization"].join(", "),
  };
}

/** The scope that a user needs to delete a token: their own tokens need less. */
export function deletionScope({ created_by: creator }: Pick<Token, "created_by">, userId: string): string {
  return creator === `user:${userId}` ? "keys:read" : "keys:write";
}
