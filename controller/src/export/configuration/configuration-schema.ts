import { plainPattern } from "@holdfast/common/plain-text.ts";
import { pathTargetFormat, plainTargetFormat, targetFormat } from "@holdfast/egress/target.ts";
import type { Destination } from "../destinations/destination.ts";
import { secretMask } from "#kernel/secrets/destined-secret.ts";
import { type Field, defaultMax } from "./field.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema of a destination's configuration. `partial`: the schema of a change. */
export function configurationSchema({ fields }: Pick<Destination, "fields">, partial: boolean): JsonSchema {
  const required = Object.entries(fields).flatMap(([key, field]) => (field.required && !partial ? [key] : []));
  return {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(
      Object.entries(fields).map(([key, field]) => [
        key,
        field.required && !partial ? valueSchema(field) : orNull(field),
      ]),
    ),
    ...(required.length > 0 && { required }),
  };
}

/** The schema with null, which removes a key. */
function orNull(field: Field): JsonSchema {
  return { anyOf: [valueSchema(field), { type: "null" }] };
}

const plainAscii = "^[\\x20-\\x7e]+$";

function valueSchema({ kind, pattern, values, min = 0, max, namePattern, mayHaveQuery, needsPath }: Field): JsonSchema {
  switch (kind) {
    case "flag":
      return { type: "boolean" };
    case "integer":
      return { type: "integer", minimum: min, maximum: max ?? Number.MAX_SAFE_INTEGER };
    case "choice":
      return { type: "string", enum: values };
    case "url":
      return {
        type: "string",
        maxLength: defaultMax.url,
        ...(needsPath ? pathTargetFormat : mayHaveQuery ? targetFormat : plainTargetFormat),
      };
    case "texts":
    case "secretTexts":
      return {
        type: "object",
        maxProperties: max ?? defaultMax.texts,
        ...(namePattern !== undefined && { propertyNames: { pattern: namePattern.source } }),
        additionalProperties: textOf(kind === "texts" ? plainPattern : plainAscii, defaultMax.textOfTexts),
      };
    case "text":
      return textOf(pattern?.source ?? plainPattern, max ?? defaultMax.text);
    case "secret": {
      const secret = textOf(pattern?.source ?? plainAscii, max ?? defaultMax.secret);
      return pattern === undefined ? secret : { anyOf: [secret, { const: secretMask }] };
    }
  }
}

function textOf(pattern: string, maxLength: number): JsonSchema {
  return { type: "string", minLength: 1, maxLength, pattern };
}
