import type { ApiMethod, RestRule } from "../method.ts";
import type { PathNames } from "./path-names.ts";
import { parseTemplate } from "../routes.ts";
import type { JsonSchema } from "./json-schema.ts";

/**
 * Methods to call on an object that was just created: those whose paths begin with its location and have no variable
 * beyond it, with their variables taken from the answer.
 */
export function linksOf(
  rest: RestRule,
  methods: readonly ApiMethod[],
  names: PathNames,
): Readonly<Record<string, JsonSchema>> {
  if (rest.location === undefined || rest.verb !== "POST") return {};
  const location = parseTemplate(rest.location);
  const links = methods.flatMap(({ description, rest: other }) => {
    if (other === undefined || other === rest) return [];
    const fits = location.every((segment, index) => {
      const there = other.segments[index];
      return there?.kind === segment.kind && (segment.kind === "variable" || there.text === segment.text);
    });
    const variables = names.of(other).values();
    const known = other.segments.flatMap((segment, index) => {
      if (segment.kind !== "variable") return [];
      const { value: name } = variables.next();
      const field = location[index];
      return field === undefined ? [] : [[name, `$response.body#/${field.text}`]];
    });
    if (!fits || known.length !== other.pathFields.length) return [];
    return [[description.name, { operationId: description.localName, parameters: Object.fromEntries(known) }]];
  });
  return Object.fromEntries(links);
}
