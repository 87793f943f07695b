/** One part of a path: a literal, or a variable that matches any non-empty text. */
export interface Segment {
  readonly kind: "literal" | "variable";
  readonly text: string;
}

export interface Route<T> {
  readonly verb: string;
  readonly segments: readonly Segment[];
  readonly target: T;
}

/** The match of a path: targets by verb, and decoded variables in order. */
export interface Match<T> {
  readonly targets: ReadonlyMap<string, T>;
  readonly variables: readonly string[];
}

export interface Routes<T> {
  /** The match of a path; undefined if no route has it. */
  match(path: string): Match<T> | undefined;
}

interface Level<T> {
  readonly literals: Map<string, Level<T>>;
  variable: Level<T> | undefined;
  readonly targets: Map<string, T>;
}

/** Parses a path template, such as `/managed-services/{id}`: a literal and a variable. */
export function parseTemplate(template: string): Segment[] {
  return template
    .slice(1)
    .split("/")
    .map((part) =>
      part.startsWith("{") && part.endsWith("}")
        ? { kind: "variable", text: part.slice(1, -1) }
        : { kind: "literal", text: part },
    );
}

/**
 * Creates the routes. Literal segments precede variables. The path is split before variables are decoded, so a variable
 * can contain %2F.
 */
export function createRoutes<T>(routes: readonly Route<T>[]): Routes<T> {
  const root = emptyLevel<T>();
  for (const { verb, segments, target } of routes) {
    let level = root;
    for (const segment of segments) level = childOf(level, segment);
    if (level.targets.has(verb))
      throw new Error(`two methods have ${verb} /${segments.map((part) => part.text).join("/")}`);
    level.targets.set(verb, target);
  }
  return {
    match(path) {
      const parts = path.slice(1).split("/");
      const variables: string[] = [];
      const level = find(root, parts, 0, variables);
      return level === undefined ? undefined : { targets: level.targets, variables };
    },
  };
}

function find<T>(level: Level<T>, parts: readonly string[], index: number, variables: string[]): Level<T> | undefined {
  const part = parts[index];
  if (part === undefined) return level.targets.size > 0 ? level : undefined;
  const literal = level.literals.get(part);
  if (literal !== undefined) {
    const count = variables.length;
    const found = find(literal, parts, index + 1, variables);
    if (found !== undefined) return found;
    variables.length = count;
  }
  const value = level.variable === undefined ? undefined : decodeSegment(part);
  if (level.variable === undefined || value === undefined) return undefined;
  variables.push(value);
  return find(level.variable, parts, index + 1, variables);
}

/** The decoded segment; undefined if it is empty or not percent-encoded UTF-8, so that no route matches. */
function decodeSegment(part: string): string | undefined {
  if (part === "") return undefined;
  if (!part.includes("%")) return part;
  try {
    return decodeURIComponent(part);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function childOf<T>(level: Level<T>, segment: Segment): Level<T> {
  if (segment.kind === "variable") {
    level.variable ??= emptyLevel<T>();
    return level.variable;
  }
  const child = level.literals.get(segment.text) ?? emptyLevel<T>();
  level.literals.set(segment.text, child);
  return child;
}

function emptyLevel<T>(): Level<T> {
  return { literals: new Map(), variable: undefined, targets: new Map() };
}
