import type { ResourceSpec } from "#resource-kind/resource-kind.ts";
import { databaseSchema, normalizedDatabase } from "./database-spec.ts";

/** Members of a database's spec that a files service has too. */
const members = [
  "plan",
  "plan_name",
  "storage_gb",
  "storage_size_gb",
  "storage_tier",
  "zone",
  "allowed_cidrs",
  "deletion_protection",
  "tags",
] as const;

/** JSON Schema of the spec of a files service: that of a database without engine, version and parameters. */
export function filesSchema(): Readonly<Record<string, unknown>> {
  const { properties, ...schema } = databaseSchema({ database_type: "files" });
  const shared = properties as Readonly<Record<string, unknown>>;
  return { ...schema, properties: Object.fromEntries(members.map((name) => [name, shared[name]])) };
}

/** The spec with full names of members, and with defaults. */
export function normalizedFiles(spec: ResourceSpec): ResourceSpec {
  return normalizedDatabase(spec);
}
