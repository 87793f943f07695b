import { HoldfastError } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { isPlainText } from "@holdfast/common/plain-text.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import { parseTarget } from "@holdfast/egress/target.ts";
import type { ConfigurationFault, Destination, VendorUrls } from "../destinations/destination.ts";
import type { SendTarget } from "../export-sender.ts";
import type { Configuration, ConfigurationValue } from "../metrics-export.ts";
import type { OwnServices } from "../own-services.ts";
import { secretMask } from "#kernel/secrets/destined-secret.ts";
import { type Field, defaultMax } from "./field.ts";

/** The result of a validation: the configuration with its defaults, or all faults. */
export type CheckedConfiguration =
  | { readonly ok: true; readonly configuration: Configuration }
  | { readonly ok: false; readonly faults: readonly ConfigurationFault[] };

/**
 * Validates a complete configuration in JSON. A mask stands for a stored secret; the caller checks that there is one.
 */
export function checkConfiguration(
  destination: Pick<Destination, "type" | "fields" | "check">,
  given: Readonly<Record<string, unknown>>,
): CheckedConfiguration {
  const { type, fields } = destination;
  const names = Object.keys(fields);
  const unknown = Object.keys(given)
    .filter((key) => !Object.hasOwn(fields, key))
    .map((key) => fault(key, "unknown_field", `is not a key of ${type}, which has ${names.join(", ")}`));
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
  const all = [...unknown, ...faults];
  const together = destination.check?.(configuration) ?? [];
  // A key that already has a fault gets no second one.
  const reported = new Set(all.map(({ key }) => key));
  const more = together.filter(({ key }) => !reported.has(key));
  if (all.length + more.length > 0) return { ok: false, faults: [...all, ...more] };
  return { ok: true, configuration };
}

const fault = (key: string, code: string, detail: string): ConfigurationFault => ({ key, code, detail });

type Wrong = Pick<ConfigurationFault, "code" | "detail"> | undefined;

function faultOf(field: Field, value: unknown): Wrong {
  switch (field.kind) {
    case "flag":
      return typeof value === "boolean" ? undefined : wrongType("true or false");
    case "integer":
      return integerFault(field, value);
    case "choice":
      return typeof value === "string" && field.values?.includes(value)
        ? undefined
        : { code: "unknown_value", detail: `must be one of ${field.values?.join(", ")}` };
    case "text":
      return textFault(value, field.max ?? defaultMax.text, field);
    case "secret":
      return textFault(value, field.max ?? defaultMax.secret, field);
    case "url":
      return urlFault(field, value);
    case "texts":
    case "secretTexts":
      return textsFault(field, value);
  }
}

const wrongType = (words: string): Wrong => ({ code: "wrong_type", detail: `must be ${words}` });

function integerFault({ min = 0, max = Number.MAX_SAFE_INTEGER }: Field, value: unknown): Wrong {
  if (typeof value !== "number" || !Number.isInteger(value)) return wrongType("an integer");
  if (value >= min && value <= max) return undefined;
  return { code: "out_of_range", detail: `must be ${min} to ${max}` };
}

function textFault(value: unknown, max: number, { pattern, requirement, kind }: Field): Wrong {
  if (typeof value !== "string") return wrongType("a text");
  if (value === "") return { code: "too_short", detail: "must not be empty" };
  if (value.length > max) return { code: "too_long", detail: `must have at most ${max} characters` };
  // The value is used in headers, where a line break would end the header, and is displayed.
  if (!isPlainText(value))
    return {
      code: "invalid_text",
      detail: "must have no control characters, invisible characters or marks of text direction",
    };
  if (kind === "secret" && !/^[\x20-\x7e]*$/.test(value) && pattern === undefined)
    return { code: "invalid_text", detail: "must be plain ASCII" };
  if (pattern !== undefined && value !== secretMask && !pattern.test(value))
    return { code: "invalid_value", detail: `must ${requirement}` };
  return undefined;
}

function urlFault({ mayHaveQuery, needsPath, pattern, requirement }: Field, value: unknown): Wrong {
  if (typeof value !== "string") return wrongType("a text");
  if (value.length > defaultMax.url)
    return { code: "too_long", detail: `must have at most ${defaultMax.url} characters` };
  const parsed = parseTarget(value);
  if (!parsed.ok && parsed.fault === "invalid") return { code: "invalid_url", detail: parsed.detail };
  if (value.includes("#")) return { code: "invalid_url", detail: "must not have a fragment" };
  if (!mayHaveQuery && value.includes("?")) return { code: "invalid_url", detail: "must not have a query" };
  if (needsPath && parsed.ok && parsed.target.url.pathname === "/")
    return { code: "path_required", detail: `must ${requirement}` };
  if (pattern !== undefined && !pattern.test(value)) return { code: "invalid_url", detail: `must ${requirement}` };
  return undefined;
}

function textsFault(field: Field, value: unknown): Wrong {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return wrongType("an object of texts");
  const entries = Object.entries(value as Readonly<Record<string, unknown>>);
  const max = field.max ?? defaultMax.texts;
  if (entries.length > max) return { code: "too_many", detail: `must have at most ${max} entries` };
  for (const [name, text] of entries) {
    if (field.namePattern !== undefined && !field.namePattern.test(name))
      return { code: "invalid_name", detail: `must have no name ${JSON.stringify(name.slice(0, 64))}` };
    if (field.refusedNames?.test(name)) return { code: "invalid_name", detail: `must not set ${name}` };
    const wrong = textFault(text, defaultMax.textOfTexts, { kind: field.kind === "texts" ? "text" : "secret" });
    if (wrong !== undefined) return { ...wrong, detail: `has ${name}, which ${wrong.detail}` };
  }
  return undefined;
}

interface Deps {
  readonly egress: Pick<EgressClient, "check">;
  readonly vendors: VendorUrls;
  readonly ownServices?: OwnServices;
}

/**
 * Throws TARGET_NOT_ALLOWED for a URL whose host has a forbidden address and is no service of the organization, and
 * NOT_POSSIBLE if neither the configuration nor the installation has a base URL. Host names are checked again at each
 * connection.
 */
export async function checkTargets(
  { destination, configuration, organizationId }: SendTarget,
  { egress, vendors, ownServices }: Deps,
  signal: AbortSignal,
): Promise<void> {
  if (destination.vendorBase?.(configuration, vendors) === "")
    throw new HoldfastError(
      "NOT_POSSIBLE",
      `This installation has no default URL for ${destination.type}: set configuration.endpoint.`,
    );
  for (const [key, { kind }] of Object.entries(destination.fields)) {
    const url = lookUp(configuration, key);
    if (kind !== "url" || typeof url !== "string") continue;
    const parsed = parseTarget(url);
    if (!parsed.ok)
      throw new HoldfastError("TARGET_NOT_ALLOWED", `configuration.${key} cannot be a destination: ${parsed.detail}.`);
    if (ownServices?.(url, organizationId) !== undefined) continue;
    try {
      await egress.check(parsed.target, signal);
    } catch (cause) {
      if (!(cause instanceof EgressFailure)) throw cause;
      const detail = `configuration.${key} has a forbidden address: exports must not connect to it.`;
      throw new HoldfastError("TARGET_NOT_ALLOWED", detail, { cause });
    }
  }
}
