/** Why a caller with these scopes may not call a method of the scope; undefined when it may. */
export function missingScope(scopes: readonly string[], scope: string): string | undefined {
  const [area = ""] = scope.split(":");
  if (scope === "public" || scope === "signed-in" || scopes.includes(scope) || scopes.includes(`${area}:*`))
    return undefined;
  return `Your role lacks the scope ${scope}.`;
}
