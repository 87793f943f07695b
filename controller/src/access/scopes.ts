import { invalid } from "@holdfast/common/errors.ts";
import type { ScopeArea } from "#kernel/system-declaration.ts";

/** Roles of members, from the least to the most. */
export const roles = ["viewer", "developer", "admin", "owner"] as const;
export type Role = (typeof roles)[number];

/**
 * Rights that organizations can grant, out of the areas that systems declare. `platform:*` is not among them: operators
 * are made on the host.
 */
export interface Rights {
  readonly roleScopes: Readonly<Record<Role, ReadonlySet<string>>>;
  /** All of them, `area:*` too. */
  readonly scopes: readonly string[];
  /** Is it a right of an area, or `area:*`? */
  isScope(scope: string): boolean;
  /** Throws INVALID_REQUEST that names each scope that no organization can give. */
  check(scopes: readonly string[]): void;
}

export function createRights(areas: Readonly<Record<string, ScopeArea>>): Rights {
  const scopesOf = (role: Role) =>
    new Set(
      Object.entries(areas).flatMap(([area, { rights, wholeFrom }]) => {
        if (wholeFrom !== undefined && roles.indexOf(role) >= roles.indexOf(wholeFrom)) return [`${area}:*`];
        return rights.includes("read") ? [`${area}:read`] : [];
      }),
    );
  function isScope(scope: string): boolean {
    const [area = "", right = ""] = scope.split(":");
    return Object.hasOwn(areas, area) && (right === "*" || areas[area]?.rights.includes(right) === true);
  }
  return {
    roleScopes: {
      viewer: scopesOf("viewer"),
      developer: scopesOf("developer"),
      admin: scopesOf("admin"),
      owner: scopesOf("owner"),
    },
    scopes: Object.entries(areas).flatMap(([area, { rights }]) => [...rights, "*"].map((right) => `${area}:${right}`)),
    isScope,
    check(scopes) {
      const faults = scopes.flatMap((scope, index) =>
        isScope(scope)
          ? []
          : [{ field: `scopes[${index}]`, code: "unknown_scope", detail: "is no scope of organizations" }],
      );
      if (faults.length > 0) throw invalid(...faults);
    },
  };
}

/** True when the scopes `held` include this one; `area:*` must be held by name, so that it covers future scopes. */
export function covers(held: ReadonlySet<string>, scope: string): boolean {
  return held.has(scope) || held.has(`${scope.slice(0, scope.indexOf(":"))}:*`);
}

/** Scopes of both sides: the remainder of a token whose maker has lost some. */
export function intersection(scopes: Iterable<string>, held: ReadonlySet<string>): Set<string> {
  const both = new Set<string>();
  for (const scope of scopes) {
    if (covers(held, scope)) both.add(scope);
    else if (scope.endsWith(":*")) {
      for (const other of held) if (other.startsWith(scope.slice(0, -1))) both.add(other);
    }
  }
  return both;
}
