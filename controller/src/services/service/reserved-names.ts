import type { FieldFault } from "@holdfast/common/errors.ts";

/** Literal segments that stand, or are to stand, where a service's name could: no service is called so. */
const reservedNames: ReadonlySet<string> = new Set(["export", "import", "restore", "templates", "catalog"]);

/** What is wrong with a name that is reserved; undefined for any other. */
export function reservedNameFault(name: string): FieldFault | undefined {
  if (!reservedNames.has(name)) return undefined;
  const detail = "is a word of the API's own paths; choose another name";
  return { field: "name", pointer: "/name", code: "reserved", detail };
}
