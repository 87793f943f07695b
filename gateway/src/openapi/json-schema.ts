/** A JSON Schema of draft 2020-12, which OpenAPI 3.1 uses. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** The schema, extended by null. */
export function orNull(schema: JsonSchema): JsonSchema {
  if ("$ref" in schema) return { anyOf: [schema, { type: "null" }] };
  const { type, enum: values } = schema;
  if (typeof type !== "string") return schema;
  return { ...schema, type: [type, "null"], ...(Array.isArray(values) ? { enum: [...values, null] } : {}) };
}

/** Adds a description; JSON Schema 2020-12 allows it beside a $ref too. */
export function described(schema: JsonSchema, description: string | undefined): JsonSchema {
  return description === undefined ? schema : { ...schema, description };
}
