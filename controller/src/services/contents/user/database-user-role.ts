import { DatabaseUserRole } from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import type { DatabaseUserSpec } from "./database-user.ts";

// biome-ignore format: a table, aligned so that it reads as one
const roles: readonly (readonly [DatabaseUserRole, string])[] = [
  [DatabaseUserRole.ADMIN,     "admin"],
  [DatabaseUserRole.READWRITE, "readwrite"],
  [DatabaseUserRole.READONLY,  "readonly"],
  [DatabaseUserRole.CUSTOM,    "custom"],
];

/** The role as it is shown. */
export function shownRole(role: string): DatabaseUserRole {
  return roles.find(([, name]) => name === role)?.[0] ?? DatabaseUserRole.CUSTOM;
}

/** The role that a request names; only those that the platform gives pass its checks. */
export function roleName(role: DatabaseUserRole): DatabaseUserSpec["role"] {
  return asManagedRole(roles.find(([shown]) => shown === role)?.[1] ?? "");
}

export function asManagedRole(role: string): DatabaseUserSpec["role"] {
  if (role === "admin" || role === "readwrite" || role === "readonly") return role;
  throw new Error(`${role} is no role that the platform gives`);
}
