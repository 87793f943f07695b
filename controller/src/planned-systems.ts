import { declareSystem } from "#kernel/system-declaration.ts";

/** Scopes of the specification whose RPCs are still to come. */
const files = declareSystem({
  name: "files",
  scopes: { files: { rights: ["read", "write"], wholeFrom: "developer" } },
});

/** Systems that are still to come. */
export const plannedSystems = [files] as const;
