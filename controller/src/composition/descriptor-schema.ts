import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";

/** Maximum number of resources in a composition. */
export const resourcesMax = 100;
export const descriptorBytesMax = 256 * 1024;

/** Names of projects and of resources in them. */
const namePattern = "^[a-z][a-z0-9-]{0,62}$";
/** Names that would collide with paths of the API, such as `POST /projects/deploy`. */
const reservedProjectNames: readonly string[] = ["deploy", "plan"];

type JsonSchema = Readonly<Record<string, unknown>>;

/** The JSON Schema (2020-12) of a descriptor with the registered kinds. */
export function descriptorSchema(kinds: ResourceKinds): JsonSchema {
  const specs = [...kinds.names].map(([name, { kind, implied }]) => ({
    if: { properties: { kind: { const: name } } },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: { properties: { spec: kind.schema(implied) } },
  }));
  const names = { type: "array", maxItems: resourcesMax, items: { type: "string", pattern: namePattern } };
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Holdfast project",
    type: "object",
    additionalProperties: false,
    required: ["name", "resources"],
    properties: {
      $schema: { type: "string", maxLength: 1_024 },
      name: { type: "string", pattern: namePattern, not: { enum: reservedProjectNames } },
      resources: {
        type: "array",
        maxItems: resourcesMax,
        items: {
          type: "object",
          additionalProperties: false,
          required: ["logical_name", "kind"],
          properties: {
            logical_name: { type: "string", pattern: namePattern },
            kind: { enum: [...kinds.names.keys(), ...kinds.planned] },
            spec: { type: "object" },
          },
          allOf: specs,
        },
      },
      dependencies: {
        type: "object",
        maxProperties: resourcesMax,
        propertyNames: { pattern: namePattern },
        additionalProperties: names,
        description: "For each resource: names of the resources that must run before it.",
      },
    },
  };
}
