import { isDeepStrictEqual } from "node:util";
import { lookUp } from "@holdfast/common/look-up.ts";
import { requestOf, type RestCases, type Step } from "./rest-cases.ts";

/** Sends a request; a body of text is sent as it is. */
export type SendRequest = (
  method: string,
  path: string,
  body: string | undefined,
) => Promise<{ readonly status: number; readonly body: unknown }>;

/** Features of the language of cases that this runner has; a case that needs another one is left out. */
const features: ReadonlySet<string> = new Set([
  "allowed_warnings",
  "allowed_warnings_regex",
  "arbitrary_key",
  "contains",
  "default_shards",
  "node_selector",
  "regex",
  "stash_in_key",
  "stash_in_path",
  "warnings",
  "warnings_regex",
]);

/** Statuses by the words of `catch`. */
const caught: Readonly<Record<string, (status: number) => boolean>> = {
  bad_request: (status) => status === 400,
  unauthorized: (status) => status === 401,
  forbidden: (status) => status === 403,
  missing: (status) => status === 404,
  request_timeout: (status) => status === 408,
  conflict: (status) => status === 409,
  unavailable: (status) => status === 503,
  request: (status) => status >= 400,
};

/** Step that leaves a case out, for versions or for runners without features. */
interface Skip {
  readonly version?: string | number | null;
  readonly features?: string | readonly string[];
}

/** True if the steps are not for this version, or need a feature that the runner lacks. */
export function isLeftOut(steps: readonly Step[], version: string): boolean {
  return steps.some((step) => {
    const skip = lookUp(step, "skip") as Skip | undefined;
    if (skip === undefined) return false;
    const needed = [skip.features ?? []].flat().flatMap((each) => each.split(/\s*,\s*/));
    return needed.some((each) => !features.has(each.trim())) || isInRanges(version, skip.version);
  });
}

/** Ranges such as ` - 2.9.99, 3.0.0 - `, or `all`. */
function isInRanges(version: string, ranges: string | number | null | undefined): boolean {
  if (ranges === undefined || ranges === null) return false;
  return String(ranges)
    .split(",")
    .some((range) => {
      if (range.trim() === "all") return true;
      const [, from = "", to = ""] = /^\s*([\d.]*)\s*-\s*([\d.]*)\s*$/.exec(range) ?? [];
      return (from === "" || numberOf(version) >= numberOf(from)) && (to === "" || numberOf(version) <= numberOf(to));
    });
}

/** Versions of Elasticsearch, from which OpenSearch comes, are before those of OpenSearch. */
function numberOf(version: string): number {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map(Number);
  return ((major >= 5 ? major - 10 : major) * 1_000 + minor) * 1_000 + patch;
}

/** Runs steps after each other; throws with the step that does not hold. */
export function createStepRunner({ apis }: Pick<RestCases, "apis">, send: SendRequest) {
  const stash = new Map<string, unknown>();
  let answer: unknown;

  const filled = (value: unknown): unknown => {
    if (typeof value === "string") {
      if (stash.has(value.slice(1)) && value.startsWith("$")) return stash.get(value.slice(1));
      return value.replaceAll(/\$\{(\w+)\}/g, (text, name: string) =>
        stash.has(name) ? String(stash.get(name)) : text,
      );
    }
    if (Array.isArray(value)) return value.map(filled);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [String(filled(key)), filled(each)]));
  };

  async function call(step: Readonly<Record<string, unknown>>): Promise<void> {
    const { catch: expected, headers: _headers, ...rest } = step;
    const [name, given] = Object.entries(rest).find(([key]) => apis.has(key)) ?? ["", undefined];
    const api = apis.get(name);
    if (api === undefined) throw new Error(`no API ${Object.keys(rest).join()}`);
    const args = (filled(given ?? {}) ?? {}) as Readonly<Record<string, unknown>>;
    let request: ReturnType<typeof requestOf>;
    try {
      request = requestOf(api, args);
    } catch (error) {
      if (expected === "param") return;
      throw error;
    }
    const isLines = /^(bulk|msearch|msearch_template)$/.test(name);
    const { status, body } = await send(request.method, request.path, textOf(args["body"], isLines));
    answer = request.method === "HEAD" ? status < 400 : body;
    check(status, expected, [args["ignore"] ?? []].flat(), request.method);
  }

  function check(status: number, expected: unknown, ignored: readonly unknown[], method: string): void {
    const got = `HTTP ${status} ${JSON.stringify(answer)?.slice(0, 400)}`;
    if (expected === undefined) {
      const isFine = status < 400 || ignored.map(Number).includes(status) || (method === "HEAD" && status === 404);
      if (!isFine) throw new Error(got);
    } else if (typeof expected === "string" && expected.startsWith("/")) {
      const text = typeof answer === "string" ? answer : JSON.stringify(answer);
      if (status < 400 || !new RegExp(expected.slice(1, -1), "s").test(text.replaceAll('\\"', '"')))
        throw new Error(`${got}, not ${expected}`);
    } else if (typeof expected !== "string" || lookUp(caught, expected)?.(status) !== true)
      throw new Error(`${got}, not ${JSON.stringify(expected)}`);
  }

  const valueAt = (path: string): unknown => {
    if (path === "$body" || path === "") return answer;
    return path
      .replace(/^\$body\./, "")
      .split(/(?<!\\)\./)
      .map((part) => String(filled(part.replaceAll("\\.", "."))))
      .reduce((value: unknown, part) => {
        if (typeof value !== "object" || value === null) return undefined;
        return part === "_arbitrary_key_" ? Object.keys(value)[0] : lookUp(value, part);
      }, answer);
  };

  const compare = (holds: (found: never, expected: never) => boolean) => (given: unknown) => {
    for (const [path, raw] of Object.entries(given as Readonly<Record<string, unknown>>)) {
      const [found, expected] = [valueAt(path), filled(raw)];
      if (!holds(found as never, expected as never))
        throw new Error(`${path} is ${JSON.stringify(found)?.slice(0, 300)}, not ${JSON.stringify(expected)}`);
    }
  };
  const isTrue = (path: string | null): boolean => {
    const found = valueAt(path ?? "");
    return !(
      found === undefined ||
      found === null ||
      found === false ||
      found === "" ||
      found === 0 ||
      found === "false"
    );
  };

  const steps: Readonly<Record<string, (given: never) => void | Promise<void>>> = {
    do: call,
    skip: () => undefined,
    set: (given: Readonly<Record<string, string>>) => {
      for (const [path, name] of Object.entries(given)) stash.set(name, valueAt(path));
    },
    match: compare((found: unknown, expected: unknown) => isMatch(found, expected)),
    length: compare((found: object | string, expected: number) =>
      typeof found === "string" ? found.length === expected : Object.keys(found ?? {}).length === expected,
    ),
    contains: compare((found: unknown, expected: unknown) =>
      Array.isArray(found) ? found.some((each) => isMatch(each, expected)) : String(found).includes(String(expected)),
    ),
    gt: compare((found: number, expected: number) => Number(found) > Number(expected)),
    gte: compare((found: number, expected: number) => Number(found) >= Number(expected)),
    lt: compare((found: number, expected: number) => Number(found) < Number(expected)),
    lte: compare((found: number, expected: number) => Number(found) <= Number(expected)),
    is_true: (path: string | null) => {
      if (!isTrue(path)) throw new Error(`${path} is not true`);
    },
    is_false: (path: string | null) => {
      if (isTrue(path)) throw new Error(`${path} is not false`);
    },
  };

  return async (all: readonly Step[]): Promise<void> => {
    for (const step of all)
      for (const [name, given] of Object.entries(step)) {
        const run = lookUp(steps, name);
        if (run === undefined) throw new Error(`no step ${name}`);
        await run(given as never);
      }
  };
}

/** Body of a request: JSON, or lines of it. */
function textOf(body: unknown, isLines: boolean): string | undefined {
  if (body === undefined || body === null) return undefined;
  if (!isLines) return typeof body === "string" ? body : JSON.stringify(body);
  const lines = Array.isArray(body) ? body : [body];
  const text = lines.map((line: unknown) =>
    typeof line === "string" ? line.replace(/\n$/, "") : JSON.stringify(line),
  );
  return `${text.join("\n")}\n`;
}

/** Numbers are equal by value, objects with all their fields; a text between slashes is a pattern with comments. */
function isMatch(found: unknown, expected: unknown): boolean {
  if (typeof expected === "string" && /^\s*\/.*\/\s*$/s.test(expected))
    return patternOf(expected).test(typeof found === "string" ? found : JSON.stringify(found));
  if (typeof expected === "number" && typeof found === "string") return false;
  if (expected === null) return found === null || found === undefined;
  return isDeepStrictEqual(found, expected);
}

/** A pattern in Java's mode with comments: white space and lines after `#` are no part of it. */
function patternOf(text: string): RegExp {
  const source = text.trim().slice(1, -1);
  let result = "";
  let isInClass = false;
  for (let at = 0; at < source.length; at += 1) {
    const character = source[at] ?? "";
    if (character === "\\") {
      result += character + (source[at + 1] ?? "");
      at += 1;
    } else if (character === "[") {
      isInClass = true;
      result += character;
    } else if (character === "]") {
      isInClass = false;
      result += character;
    } else if (character === "$" && !isInClass) result += "(?=\\n?$)";
    else if (character === "+" && !isInClass && /[*+?]/.test(source[at - 1] ?? "") && source[at - 2] !== "\\") continue;
    else if (/\s/.test(character)) continue;
    else if (character === "#" && !isInClass) {
      while (at + 1 < source.length && source[at + 1] !== "\n") at += 1;
    } else result += character;
  }
  return new RegExp(result, "s");
}
