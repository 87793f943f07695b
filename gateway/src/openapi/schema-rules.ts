import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { JsonSchema } from "./json-schema.ts";

/** A field or message of a request, and JSON Schema keywords for additional checks of its handler. */
export type SchemaRule = readonly [of: DescField | DescMessage, keywords: JsonSchema];

/** Keywords of a format, which replaces the limits of length and characters. */
export function formatRule(format: "email" | "hostname"): JsonSchema {
  return { format, minLength: undefined, maxLength: undefined, pattern: undefined };
}

export interface SchemaRules {
  /** Adds the keywords of the field or message; keywords of a list field apply to its items. */
  add(schema: JsonSchema, of: DescField | DescMessage): JsonSchema;
}

/** Creates the rules. Throws if two entries are for the same field or message. */
export function createSchemaRules(list: readonly SchemaRule[]): SchemaRules {
  const forms = new Map(list);
  if (forms.size < list.length) throw new Error("two entries are for the same field or message");
  return {
    add(schema, of) {
      const form = forms.get(of);
      if (form === undefined) return schema;
      return schema.type === "array"
        ? { ...schema, items: both(schema.items as JsonSchema, form) }
        : both(schema, form);
    },
  };
}

function both(schema: JsonSchema, form: JsonSchema): JsonSchema {
  const required = [schema, form].flatMap((each) => (each.required as readonly string[] | undefined) ?? []);
  return { ...schema, ...form, ...(required.length > 0 && { required: [...new Set(required)] }) };
}
