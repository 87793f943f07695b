import { type ObjectName, qualified, quoteName } from "../bind/object-name.ts";
import type { Grant } from "../parse/ast.ts";
import { SqlError } from "../run/sql-error.ts";

/** GRANT or REVOKE of PostgreSQL. `roles` are the names of roles as PostgreSQL has them. */
export function emitGrant(grant: Grant, name: ObjectName, roles: readonly string[], hasRows: boolean): string {
  const { verb, hasOption, cascades } = grant;
  // SELECT on a function with rows is EXECUTE in PostgreSQL.
  const permissions = hasRows
    ? grant.permissions.map((each) => (each.name === "SELECT" ? { ...each, name: "EXECUTE" as const } : each))
    : grant.permissions;
  const isProcedure = permissions.every((each) => each.name === "EXECUTE");
  if (!isProcedure && permissions.some((each) => each.name === "EXECUTE"))
    throw new SqlError(4606, "Granted or revoked privilege EXECUTE is not compatible with object.");
  const list = permissions.map((each) => {
    const columns = each.columns.map((column) => quoteName(column.toLowerCase()));
    return columns.length === 0 ? each.name : `${each.name} (${columns.join(", ")})`;
  });
  const object = isProcedure ? `ROUTINE ${qualified(name)}` : `TABLE ${qualified(name)}`;
  const principals = roles.map((role) => (role === "public" ? "PUBLIC" : quoteName(role))).join(", ");
  if (verb === "GRANT")
    return `GRANT ${list.join(", ")} ON ${object} TO ${principals}${hasOption ? " WITH GRANT OPTION" : ""}`;
  const option = hasOption ? "GRANT OPTION FOR " : "";
  return `REVOKE ${option}${list.join(", ")} ON ${object} FROM ${principals}${cascades ? " CASCADE" : ""}`;
}
