/** Roles of members, from the least to the most. */
export const roles = ["viewer", "developer", "admin", "owner"] as const;
export type Role = (typeof roles)[number];

/** Every scope that an organization can give, by its area. `platform:*` is not among them: operators are made on the host. */
const rights: Readonly<Record<string, readonly string[]>> = {
  services: ["read", "write", "secrets", "data"],
  webhooks: ["read", "write"],
  files: ["read", "write"],
  org: ["read", "write"],
  keys: ["read", "write"],
  audit: ["read"],
  organization: ["delete"],
};

const everyRead = Object.entries(rights).flatMap(([area, has]) => (has.includes("read") ? [`${area}:read`] : []));
const admin = ["services:*", "files:*", "webhooks:*", "org:*", "keys:*", "audit:read"];

export const roleScopes: Readonly<Record<Role, ReadonlySet<string>>> = {
  viewer: new Set(everyRead),
  developer: new Set([...everyRead, "services:*", "files:*"]),
  admin: new Set(admin),
  owner: new Set([...admin, "organization:*"]),
};

/** Is it a right of an area, or `area:*`? */
export function isScope(scope: string): boolean {
  const [area = "", right = ""] = scope.split(":");
  return Object.hasOwn(rights, area) && (right === "*" || rights[area]?.includes(right) === true);
}

/** True when whoever has `held` has this scope too; `area:*` is had by name only, so that it covers what comes later. */
export function covers(held: ReadonlySet<string>, scope: string): boolean {
  return held.has(scope) || held.has(`${scope.slice(0, scope.indexOf(":"))}:*`);
}

/** What both sides have: what is left of a token when its maker has become less. */
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
