/** Variables of a path, by name. */
export type PathVariables = Readonly<Record<string, string>>;

/** A pattern such as "/services/:id/:tab?", and its page. */
export interface Route<Page> {
  readonly pattern: string;
  readonly page: Page;
}

export interface Match<Page> {
  readonly page: Page;
  readonly variables: PathVariables;
}

/** The first route whose pattern matches the path. A segment with invalid percent-encoding matches no route. */
export function matchRoute<Page>(routes: readonly Route<Page>[], path: string): Match<Page> | undefined {
  const segments = path.split("/").filter((segment) => segment !== "");
  for (const { pattern, page } of routes) {
    const variables = variablesOf(pattern, segments);
    if (variables !== undefined) return { page, variables };
  }
  return undefined;
}

function variablesOf(pattern: string, segments: readonly string[]): PathVariables | undefined {
  const parts = pattern.split("/").filter((part) => part !== "");
  if (segments.length > parts.length) return undefined;
  const variables: Record<string, string> = {};
  for (const [index, part] of parts.entries()) {
    const segment = segments[index];
    if (segment === undefined) {
      if (part.endsWith("?")) continue;
      return undefined;
    }
    if (!part.startsWith(":")) {
      if (part !== segment) return undefined;
      continue;
    }
    const value = decoded(segment);
    if (value === undefined) return undefined;
    variables[part.replaceAll(/[:?]/g, "")] = value;
  }
  return variables;
}

function decoded(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
