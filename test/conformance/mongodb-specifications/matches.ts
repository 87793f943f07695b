import { BSON } from "mongodb";

/** `exact`: no other fields at any depth. `root`: a result, and each document of one, may have others. */
type Mode = "exact" | "root";

type Value = Readonly<Record<string, unknown>>;

/** True if a value is the expected one by the rules of the unified test format, but for types of numbers. */
export function matches(expected: unknown, actual: unknown, mode: Mode): boolean {
  return isMatch(plain(expected), actual === undefined ? undefined : plain(actual), mode);
}

function plain(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(BSON.EJSON.stringify(value, { relaxed: true })) as unknown);
}

function isMatch(expected: unknown, actual: unknown, mode: Mode): boolean {
  if (Array.isArray(expected)) {
    const items: readonly unknown[] | undefined = Array.isArray(actual) ? actual : undefined;
    return items?.length === expected.length && expected.every((each, index) => isMatch(each, items[index], mode));
  }
  if (!isObject(expected)) return expected === actual;
  if ("$$unsetOrMatches" in expected)
    return actual === undefined || actual === null || isMatch(expected["$$unsetOrMatches"], actual, mode);
  if ("$$exists" in expected) return (actual !== undefined) === expected["$$exists"];
  if ("$$type" in expected) return actual !== undefined;
  if (!isObject(actual)) return false;
  const hasOthers = Object.keys(actual).some((name) => !Object.hasOwn(expected, name));
  if (mode === "exact" && hasOthers) return false;
  return Object.entries(expected).every(([name, value]) =>
    isMatch(value, Object.hasOwn(actual, name) ? actual[name] : undefined, "exact"),
  );
}

function isObject(value: unknown): value is Value {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
