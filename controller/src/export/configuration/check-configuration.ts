import { lookUp } from "@holdfast/common/look-up.ts";
import { parseTarget } from "@holdfast/egress/target.ts";
import type { ConfigurationFault, Destination } from "../destinations/destination.ts";
import type { Configuration, ConfigurationValue } from "../metrics-export.ts";
import { type Field, mask, usualMost } from "./field.ts";

/** The configuration with its defaults, or everything that is wrong with it. */
export type CheckedConfiguration =
  | { readonly ok: true; readonly configuration: Configuration }
  | { readonly ok: false; readonly faults: readonly ConfigurationFault[] };

/**
 * Judges a whole configuration, as it came as JSON. Masks stand for secrets that are kept: whether there is one is for the
 * caller to know.
 */
export function checkConfiguration(
  destination: Pick<Destination, "type" | "fields" | "check">,
  given: Readonly<Record<string, unknown>>,
): CheckedConfiguration {
  const { type, fields } = destination;
  const known = Object.keys(fields);
  const strange = Object.keys(given)
    .filter((key) => !Object.hasOwn(fields, key))
    .map((key) => fault(key, "unknown_field", `is not a key of ${type}, which has ${known.join(", ")}`));
  const configuration: Record<string, ConfigurationValue> = {};
  const faults = Object.entries(fields).flatMap(([key, field]) => {
    const value = lookUp(given, key) ?? undefined;
    if (value === undefined) {
      if (field.required) return [fault(key, "required", "is required")];
      if (field.default !== undefined) configuration[key] = field.default;
      return [];
    }
    const detail = faultOf(field, value);
    if (detail !== undefined) return [fault(key, detail.code, detail.detail)];
    configuration[key] = value as ConfigurationValue;
    return [];
  });
  const all = [...strange, ...faults];
  const together = destination.check?.(configuration) ?? [];
  // What is wrong by itself is not told a second time.
  const told = new Set(all.map(({ key }) => key));
  const more = together.filter(({ key }) => !told.has(key));
  if (all.length + more.length > 0) return { ok: false, faults: [...all, ...more] };
  return { ok: true, configuration };
}

const fault = (key: string, code: string, detail: string): ConfigurationFault => ({ key, code, detail });

type Wrong = Pick<ConfigurationFault, "code" | "detail"> | undefined;

function faultOf(field: Field, value: unknown): Wrong {
  switch (field.kind) {
    case "flag":
      return typeof value === "boolean" ? undefined : wrongType("true or false");
    case "whole":
      return wholeFault(field, value);
    case "choice":
      return typeof value === "string" && field.values?.includes(value)
        ? undefined
        : { code: "unknown_value", detail: `must be one of ${field.values?.join(", ")}` };
    case "text":
      return textFault(value, field.most ?? usualMost.text, field);
    case "secret":
      return textFault(value, field.most ?? usualMost.secret, field);
    case "url":
      return urlFault(field, value);
    case "texts":
    case "secretTexts":
      return textsFault(field, value);
  }
}

const wrongType = (words: string): Wrong => ({ code: "wrong_type", detail: `must be ${words}` });

function wholeFault({ least = 0, most = Number.MAX_SAFE_INTEGER }: Field, value: unknown): Wrong {
  if (typeof value !== "number" || !Number.isInteger(value)) return wrongType("a whole number");
  if (value >= least && value <= most) return undefined;
  return { code: "out_of_range", detail: `must be ${least} to ${most}` };
}

function textFault(value: unknown, most: number, { pattern, words, kind }: Field): Wrong {
  if (typeof value !== "string") return wrongType("a text");
  if (value === "") return { code: "too_short", detail: "must not be empty" };
  if (value.length > most) return { code: "too_long", detail: `must have at most ${most} characters` };
  // It comes into headers: a line end there would be the end of the header.
  if (/[\p{Cc}\u2028\u2029]/u.test(value)) return { code: "invalid_text", detail: "must have no control characters" };
  if (kind === "secret" && !/^[\x20-\x7e]*$/.test(value) && pattern === undefined)
    return { code: "invalid_text", detail: "must be plain ASCII" };
  if (pattern !== undefined && value !== mask && !pattern.test(value))
    return { code: "invalid_value", detail: `must ${words}` };
  return undefined;
}

function urlFault({ mayHaveQuery, pattern, words }: Field, value: unknown): Wrong {
  if (typeof value !== "string") return wrongType("a text");
  if (value.length > usualMost.url)
    return { code: "too_long", detail: `must have at most ${usualMost.url} characters` };
  const parsed = parseTarget(value);
  if (!parsed.ok && parsed.fault === "invalid") return { code: "invalid_url", detail: parsed.detail };
  if (value.includes("#")) return { code: "invalid_url", detail: "must not have a fragment" };
  if (!mayHaveQuery && value.includes("?")) return { code: "invalid_url", detail: "must not have a query" };
  if (pattern !== undefined && !pattern.test(value)) return { code: "invalid_url", detail: `must ${words}` };
  return undefined;
}

function textsFault(field: Field, value: unknown): Wrong {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return wrongType("an object of texts");
  const entries = Object.entries(value as Readonly<Record<string, unknown>>);
  const most = field.most ?? usualMost.texts;
  if (entries.length > most) return { code: "too_many", detail: `must have at most ${most} entries` };
  for (const [name, text] of entries) {
    if (field.namePattern !== undefined && !field.namePattern.test(name))
      return { code: "invalid_name", detail: `must have no name ${JSON.stringify(name.slice(0, 64))}` };
    if (field.refusedNames?.test(name)) return { code: "invalid_name", detail: `must not set ${name}` };
    const wrong = textFault(text, usualMost.textOfTexts, { kind: field.kind === "texts" ? "text" : "secret" });
    if (wrong !== undefined) return { ...wrong, detail: `has ${name}, which ${wrong.detail}` };
  }
  return undefined;
}
