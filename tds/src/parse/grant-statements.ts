import type { Ddl, Grant } from "./ast.ts";
import type { TokenStream } from "./token-stream.ts";
import { refuse } from "./features.ts";

/** Permissions of objects, by the word of T-SQL; PostgreSQL has the same names. */
const permissions: ReadonlyMap<string, Grant["permissions"][number]["name"]> = new Map([
  ["SELECT", "SELECT"],
  ["INSERT", "INSERT"],
  ["UPDATE", "UPDATE"],
  ["DELETE", "DELETE"],
  ["REFERENCES", "REFERENCES"],
  ["EXECUTE", "EXECUTE"],
  ["EXEC", "EXECUTE"],
]);

/** Parses GRANT or REVOKE of permissions on a table, view or procedure; other securables are error 40517. */
export function parseGrant(stream: TokenStream): Ddl {
  const verb = stream.accept("GRANT") ? "GRANT" : "REVOKE";
  if (verb === "REVOKE") stream.expect("REVOKE");
  const { line } = stream.current;
  const isOptionOnly = stream.accept("GRANT", "OPTION", "FOR");
  const list = stream.list(() => parsePermission(stream));
  if (!stream.accept("ON")) throw refuse("permissions on other securables", line, `${verb} without ON`);
  if (stream.peek(1).text === "::") {
    const { text } = stream.next();
    stream.expect("::");
    if (text.toUpperCase() !== "OBJECT")
      throw refuse("permissions on other securables", line, `ON ${text.toUpperCase()}::`);
  }
  const path = stream.path();
  if (!stream.accept("TO") && (verb === "GRANT" || !stream.accept("FROM"))) throw stream.unexpected();
  const principals = stream.list(() => (stream.accept("PUBLIC") ? "public" : stream.identifier()));
  const hasOption = stream.accept("WITH", "GRANT", "OPTION") || isOptionOnly;
  const cascades = stream.accept("CASCADE");
  return { kind: "grant", verb, permissions: list, path, principals, hasOption, cascades };
}

function parsePermission(stream: TokenStream): Grant["permissions"][number] {
  const { keyword, line } = stream.current;
  const name = permissions.get(keyword);
  if (name === undefined) throw refuse("permissions on other securables", line, `permission ${keyword}`);
  stream.next();
  return { name, columns: stream.is("(") ? stream.identifierList() : [] };
}
