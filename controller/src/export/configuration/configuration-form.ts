import { plainTargetForm, targetForm } from "@holdfast/egress/target.ts";
import type { Destination } from "../destinations/destination.ts";
import { type Field, mask, usualMost } from "./field.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

/** Pure: JSON Schema of the configurations that a destination takes. `partial` is that of a change. */
export function configurationForm({ fields }: Pick<Destination, "fields">, partial: boolean): JsonSchema {
  const required = Object.entries(fields).flatMap(([key, field]) => (field.required && !partial ? [key] : []));
  return {
    type: "object",
    additionalProperties: false,
    properties: Object.fromEntries(
      Object.entries(fields).map(([key, field]) => [key, field.required && !partial ? valueOf(field) : orNull(field)]),
    ),
    ...(required.length > 0 && { required }),
  };
}

/** null takes a key away. */
function orNull(field: Field): JsonSchema {
  return { anyOf: [valueOf(field), { type: "null" }] };
}

const noControls = "^[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]+$";
const plainAscii = "^[\\x20-\\x7e]+$";

function valueOf({ kind, pattern, values, least = 0, most, namePattern, mayHaveQuery }: Field): JsonSchema {
  switch (kind) {
    case "flag":
      return { type: "boolean" };
    case "whole":
      return { type: "integer", minimum: least, maximum: most ?? Number.MAX_SAFE_INTEGER };
    case "choice":
      return { type: "string", enum: values };
    case "url":
      return { type: "string", maxLength: usualMost.url, ...(mayHaveQuery ? targetForm : plainTargetForm) };
    case "texts":
    case "secretTexts":
      return {
        type: "object",
        maxProperties: most ?? usualMost.texts,
        ...(namePattern !== undefined && { propertyNames: { pattern: namePattern.source } }),
        additionalProperties: textOf(kind === "texts" ? noControls : plainAscii, usualMost.textOfTexts),
      };
    case "text":
      return textOf(pattern?.source ?? noControls, most ?? usualMost.text);
    case "secret": {
      const secret = textOf(pattern?.source ?? plainAscii, most ?? usualMost.secret);
      return pattern === undefined ? secret : { anyOf: [secret, { const: mask }] };
    }
  }
}

function textOf(pattern: string, maxLength: number): JsonSchema {
  return { type: "string", minLength: 1, maxLength, pattern };
}
