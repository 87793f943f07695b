import { createRights, type Rights } from "#access/scopes.ts";
import { gathered, type ScopeArea, type SystemDeclaration } from "#kernel/system-declaration.ts";
import { systems } from "./systems.ts";

/** What organizations can give on a platform with these systems. */
export function rightsOf(declared: readonly SystemDeclaration[]): Rights {
  return createRights(gathered<ScopeArea>(declared.map(({ scopes = {} }) => scopes)));
}

export const { roleScopes, isScope } = rightsOf(systems);
