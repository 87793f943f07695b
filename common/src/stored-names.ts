import { lookUp } from "./look-up.ts";

/**
 * Fields whose name in code differs from their key in stored JSON. A key of this table is the path of the field in
 * code, where `*` stands for every element of an array or every value of a map; its value is the stored key. Example:
 * `{ "spec.nodes.*.failoverCandidate": "vouches" }`.
 */
export type StoredNames = Readonly<Record<string, string>>;

/** Reads and writes JSON whose stored keys differ from the names in code. Keys that the table lacks stay unchanged. */
export interface StoredFormat<T> {
  parse(text: string): T;
  format(value: T): string;
}

interface Path {
  /** Name of the key on the other side. */
  readonly name: string;
  readonly below: Map<string, Path>;
}

/** Stored names of an object that another one stores at a path, such as `status.deleted.service`. */
export function storedNamesUnder(path: string, names: StoredNames): StoredNames {
  return Object.fromEntries(Object.entries(names).map(([field, key]) => [`${path}.${field}`, key]));
}

export function storedFormat<T>(names: StoredNames): StoredFormat<T> {
  const [fromStored, toStored] = [new Map<string, Path>(), new Map<string, Path>()];
  for (const [path, stored] of Object.entries(names)) addPath(path.split("."), stored, names, { fromStored, toStored });
  return {
    parse: (text) => renamed(JSON.parse(text), fromStored) as T,
    format: (value) => JSON.stringify(renamed(value, toStored)),
  };
}

/** Adds each step of a path to both directions, under the name that this direction reads. */
function addPath(
  steps: readonly string[],
  stored: string,
  names: StoredNames,
  sides: { readonly fromStored: Map<string, Path>; readonly toStored: Map<string, Path> },
): void {
  let { fromStored, toStored } = sides;
  for (const [index, step] of steps.entries()) {
    const isLast = index === steps.length - 1;
    const key = isLast ? stored : (lookUp(names, steps.slice(0, index + 1).join(".")) ?? step);
    fromStored = below(fromStored, key, step);
    toStored = below(toStored, step, key);
  }
}

function below(paths: Map<string, Path>, from: string, name: string): Map<string, Path> {
  const path = paths.get(from) ?? { name, below: new Map<string, Path>() };
  paths.set(from, path);
  return path.below;
}

function renamed(value: unknown, paths: Map<string, Path>): unknown {
  if (paths.size === 0 || typeof value !== "object" || value === null) return value;
  const each = paths.get("*");
  if (Array.isArray(value)) return each === undefined ? value : value.map((element) => renamed(element, each.below));
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => {
      const path = paths.get(key) ?? each;
      if (path === undefined) return [key, field];
      return [path.name === "*" ? key : path.name, renamed(field, path.below)];
    }),
  );
}
