import { invalid } from "@holdfast/common/errors.ts";
import { definePart } from "#kernel/part.ts";
import type { ScopeArea } from "#kernel/system-declaration.ts";

/** Roles of members, in ascending order. */
export const roles = ["viewer", "developer", "admin", "owner"] as const;
export type Role = (typeof roles)[number];

/**
 * Scopes that organizations can grant, from the areas that systems declare. `platform:*` is not among them: operators
 * are created on the host.
 */
export interface ScopeCatalog {
  readonly roleScopes: Readonly<Record<Role, ReadonlySet<string>>>;
  /** All grantable scopes, `area:*` included. */
  readonly scopes: readonly string[];
  /** True for a scope of an area, and for `area:*`. */
  isScope(scope: string): boolean;
  /** Throws INVALID_REQUEST that names each scope that organizations cannot grant. */
  check(scopes: readonly string[]): void;
}

export const scopeCatalogPart = definePart<ScopeCatalog>("scope catalog");

export function createScopeCatalog(areas: Readonly<Record<string, ScopeArea>>): ScopeCatalog {
  const scopesOf = (role: Role) =>
    new Set(
      Object.entries(areas).flatMap(([area, { verbs, completeFrom }]) => {
        if (completeFrom !== undefined && roles.indexOf(role) >= roles.indexOf(completeFrom)) return [`${area}:*`];
        return verbs.includes("read") ? [`${area}:read`] : [];
      }),
    );
  function isScope(scope: string): boolean {
    const [area = "", verb = ""] = scope.split(":");
    return Object.hasOwn(areas, area) && (verb === "*" || areas[area]?.verbs.includes(verb) === true);
  }
  return {
    roleScopes: {
      viewer: scopesOf("viewer"),
      developer: scopesOf("developer"),
      admin: scopesOf("admin"),
      owner: scopesOf("owner"),
    },
    scopes: Object.entries(areas).flatMap(([area, { verbs }]) => [...verbs, "*"].map((verb) => `${area}:${verb}`)),
    isScope,
    check(scopes) {
      const faults = scopes.flatMap((scope, index) =>
        isScope(scope)
          ? []
          : [{ field: `scopes[${index}]`, code: "unknown_scope", detail: "is not a scope of organizations" }],
      );
      if (faults.length > 0) throw invalid(...faults);
    },
  };
}

/** True if `granted` includes the scope. `area:*` is covered only by itself, because it includes future scopes. */
export function covers(granted: ReadonlySet<string>, scope: string): boolean {
  return granted.has(scope) || granted.has(`${scope.slice(0, scope.indexOf(":"))}:*`);
}

/** Scopes on both sides, such as the remaining scopes of a token whose creator has lost some. */
export function intersection(scopes: Iterable<string>, granted: ReadonlySet<string>): Set<string> {
  const both = new Set<string>();
  for (const scope of scopes) {
    if (covers(granted, scope)) both.add(scope);
    else if (scope.endsWith(":*")) {
      for (const other of granted) if (other.startsWith(scope.slice(0, -1))) both.add(other);
    }
  }
  return both;
}
