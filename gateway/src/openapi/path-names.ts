import type { ApiMethod, RestRule } from "../method.ts";
import { parseTemplate } from "../routes.ts";
import type { JsonSchema } from "./json-schema.ts";

/**
 * Names of path variables. OpenAPI requires methods of one path to share them, so the first method's names are used.
 */
export interface PathNames {
  of(rest: RestRule): readonly string[];
}

export function createPathNames(rules: readonly RestRule[]): PathNames {
  const variablesByShape = new Map<string, readonly string[]>();
  const shapeOf = ({ segments }: RestRule) =>
    segments.map(({ kind, text }) => (kind === "variable" ? "{}" : text)).join("/");
  for (const rule of rules) {
    const shape = shapeOf(rule);
    if (variablesByShape.has(shape)) continue;
    variablesByShape.set(
      shape,
      rule.segments.flatMap(({ kind, text }) => (kind === "variable" ? [text] : [])),
    );
  }
  return { of: (rest) => variablesByShape.get(shapeOf(rest)) ?? [] };
}

/** The path in the document, such as "/managed-services/{id}". */
export function pathOf(rest: RestRule, names: PathNames): string {
  const variables = names.of(rest).values();
  const parts = rest.segments.map(({ kind, text }) => (kind === "variable" ? `{${variables.next().value}}` : text));
  return `/${parts.join("/")}`;
}

/** Id of the operation, unique in the document: for a path of another kind of owner it ends with `-of-<kind>`. */
export function operationIdOf({ description, ownerKind }: ApiMethod): string {
  return ownerKind === undefined ? description.localName : `${description.localName}-of-${ownerKind}`;
}

/**
 * OpenAPI links from the response of a creation to methods of the new object: those whose paths begin with its location
 * and have no further variable.
 */
export function linksOf(
  rest: RestRule,
  methods: readonly ApiMethod[],
  names: PathNames,
): Readonly<Record<string, JsonSchema>> {
  if (rest.location === undefined || rest.verb !== "POST") return {};
  const location = parseTemplate(rest.location);
  const links = methods.flatMap((method) => {
    const { description, rest: other } = method;
    if (other === undefined || other === rest) return [];
    const fits = location.every((segment, index) => {
      const there = other.segments[index];
      return there?.kind === segment.kind && (segment.kind === "variable" || there.text === segment.text);
    });
    const variables = names.of(other).values();
    const parameters = other.segments.flatMap((segment, index) => {
      if (segment.kind !== "variable") return [];
      const { value: name } = variables.next();
      const field = location[index];
      return field === undefined ? [] : [[name, `$response.body#/${field.text}`]];
    });
    if (!fits || parameters.length !== other.pathFields.length) return [];
    return [[description.name, { operationId: operationIdOf(method), parameters: Object.fromEntries(parameters) }]];
  });
  return Object.fromEntries(links);
}
