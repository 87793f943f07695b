import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { JsonSchema } from "./json-schema.ts";

/** A field of a request, or a message in one, and the keywords of JSON Schema that its method checks beyond the protos. */
export type Form = readonly [of: DescField | DescMessage, keywords: JsonSchema];

/** The keywords of a format that has the limits of a text's length and characters in it. */
export function formatForm(format: "email" | "hostname"): JsonSchema {
  return { format, minLength: undefined, maxLength: undefined, pattern: undefined };
}

export interface Forms {
  /** The schema with the keywords of the field or message added; those of a list are of its items. */
  add(schema: JsonSchema, of: DescField | DescMessage): JsonSchema;
}

/** Throws when two forms are of one field. */
export function createForms(list: readonly Form[]): Forms {
  const forms = new Map(list);
  if (forms.size < list.length) throw new Error("two forms are of one field or message");
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
