import { databaseEngines, engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { plainPattern } from "@holdfast/common/plain-text.ts";
import type { ResourceSpec } from "#resource-kind/resource-kind.ts";
import { serverCollationOf } from "../service/server-collation.ts";

/** A normalized spec of a database. Absent members get their default when the database is created. */
export interface DatabaseSpec extends ResourceSpec {
  readonly database_type: string;
  readonly plan_name: string;
  readonly storage_size_gb: number;
  readonly version?: string;
  readonly storage_tier?: string;
  readonly zone?: string;
  /** Absent for the default, `single-db`. */
  readonly layout_mode?: "multi-db";
  /** Absent for the default of the engine. */
  readonly server_collation?: string;
  readonly parameters?: Readonly<Record<string, string>>;
  readonly allowed_cidrs?: readonly string[];
  readonly deletion_protection?: boolean;
  readonly tags?: Readonly<Record<string, string>>;
}

/** Alternative names of members in descriptors. */
const shortNames = { plan: "plan_name", storage_gb: "storage_size_gb" } as const;

/** Names of engines in descriptors. */
export const databaseAliases: Readonly<Record<string, { readonly database_type: string }>> = Object.fromEntries(
  databaseEngines.flatMap(({ engine, aliases = [] }) =>
    [...aliases, engine].map((name) => [name, { database_type: engine }]),
  ),
);

/** The spec with full names of members, and with defaults. */
export function normalizedDatabase(spec: ResourceSpec): DatabaseSpec {
  const named = Object.entries(spec).map(([name, value]) => [
    Object.hasOwn(shortNames, name) ? shortNames[name as keyof typeof shortNames] : name,
    value,
  ]);
  const {
    layout_mode: layoutMode,
    server_collation: collation,
    ...others
  } = Object.fromEntries(named) as Record<string, unknown>;
  const layout = layoutMode === undefined || layoutMode === "single-db" ? {} : { layout_mode: layoutMode };
  const isDefault = collation === undefined || collation === serverCollationOf({ databaseType: "tsql" });
  const chosen = isDefault ? {} : { server_collation: collation };
  return { plan_name: "tier-1", storage_size_gb: 1, ...others, ...layout, ...chosen } as DatabaseSpec;
}

const shortText = (description: string) => ({ type: "string", minLength: 1, maxLength: 40, description });
const gigabytes = {
  type: "integer",
  minimum: 1,
  maximum: 16_384,
  description: "Size of the disk, in GB; default: 1.",
};
const plan = shortText("Plan of the catalog; default: tier-1.");

/** JSON Schema of the spec as users write it; without the engine if the kind's alias implies it. */
export function databaseSchema(implied: ResourceSpec): Readonly<Record<string, unknown>> {
  const isImplied = Object.hasOwn(implied, "database_type");
  const engine = { type: "string", pattern: "^[a-z][a-z0-9-]{0,31}$", description: "Engine, such as postgresql." };
  return {
    type: "object",
    additionalProperties: false,
    ...(!isImplied && { required: ["database_type"] }),
    properties: {
      ...(!isImplied && { database_type: engine }),
      plan,
      plan_name: plan,
      storage_gb: gigabytes,
      storage_size_gb: gigabytes,
      version: { type: "string", minLength: 1, maxLength: 16, description: "Version of the engine." },
      storage_tier: shortText("Storage tier of the catalog."),
      zone: shortText("Zone of the nodes."),
      layout_mode: {
        enum: ["single-db", "multi-db"],
        description: "Layout of the databases of T-SQL clients; default: single-db. Only for tsql.",
      },
      server_collation: {
        enum: engineOf("tsql")?.serverCollations ?? [],
        description: "Collation of the texts of T-SQL clients; default: SQL_Latin1_General_CP1_CI_AS. Only for tsql.",
      },
      parameters: {
        type: "object",
        maxProperties: 200,
        propertyNames: { minLength: 1, maxLength: 63 },
        additionalProperties: { type: "string", maxLength: 1_024 },
        description: "Parameters of the engine.",
      },
      allowed_cidrs: {
        type: "array",
        maxItems: 256,
        items: { type: "string", minLength: 1, maxLength: 64 },
        description: "Networks (CIDRs) whose clients may connect.",
      },
      deletion_protection: { type: "boolean", description: "Whether deletions are refused." },
      tags: {
        type: "object",
        maxProperties: 50,
        propertyNames: { pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$" },
        additionalProperties: { type: "string", maxLength: 255, pattern: plainPattern },
      },
    },
    // A member may be given under only one of its names.
    not: { anyOf: [{ required: ["plan", "plan_name"] }, { required: ["storage_gb", "storage_size_gb"] }] },
  };
}
