import type { RestRule } from "../method.ts";

/** Names of the variables of paths: methods of one path have those of its first method, whatever their fields are called. */
export interface PathNames {
  of(rest: RestRule): readonly string[];
}

export function createPathNames(rules: readonly RestRule[]): PathNames {
  const known = new Map<string, readonly string[]>();
  const formOf = ({ segments }: RestRule) =>
    segments.map(({ kind, text }) => (kind === "variable" ? "{}" : text)).join("/");
  for (const rule of rules) {
    const form = formOf(rule);
    if (known.has(form)) continue;
    known.set(
      form,
      rule.segments.flatMap(({ kind, text }) => (kind === "variable" ? [text] : [])),
    );
  }
  return { of: (rest) => known.get(formOf(rest)) ?? [] };
}

/** The path as the document has it: "/managed-services/{id}". */
export function pathOf(rest: RestRule, names: PathNames): string {
  const variables = names.of(rest).values();
  const parts = rest.segments.map(({ kind, text }) => (kind === "variable" ? `{${variables.next().value}}` : text));
  return `/${parts.join("/")}`;
}
