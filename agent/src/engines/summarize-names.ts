const maxNames = 5;

/** The first names and the number of the others, such as `a, b and 3 more`. */
export function summarizeNames(names: readonly string[]): string {
  const more = names.length - maxNames;
  return names.slice(0, maxNames).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
