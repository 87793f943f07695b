/** Literal segments that stand, or are to stand, where a service's name could: no service is called so. */
export const reservedNames: ReadonlySet<string> = new Set(["export", "import", "restore", "templates", "catalog"]);
