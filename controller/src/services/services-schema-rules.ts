import { engineCatalog } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import type { SchemaRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import { UpdateConfigurationRequestSchema } from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import { UpgradeManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import {
  CreateManagedServiceRequestSchema,
  UpdateManagedServiceRequestSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { AddNodeRequestSchema } from "@holdfast/proto/holdfast/v1/node_pb.ts";
import { cidrForm } from "./service/network/allowed-cidrs.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

/** Schema of the parameters of all engines. Limits of numbers are in the catalog, with their units. */
function parametersForm(type: "string" | readonly string[]): JsonSchema {
  const valueOf = ({ description, values }: Parameter) => ({
    type,
    description,
    ...(values.length > 0 && { enum: type === "string" ? values : [...values, null] }),
  });
  return {
    anyOf: engineCatalog.map(({ title, parameters }) => ({
      title,
      properties: Object.fromEntries(parameters.map((parameter) => [parameter.name, valueOf(parameter)])),
      additionalProperties: false,
    })),
  };
}

const engineForm = { enum: engineCatalog.flatMap(({ engine, aliases = [] }) => [engine, ...aliases]) };
const versionForm = { enum: engineCatalog.flatMap(({ versions }) => versions) };

/** OpenAPI schemas that list the engines of this release with their parameters and versions. */
export const servicesSchemaRules: readonly SchemaRule[] = [
  [CreateManagedServiceRequestSchema.field.databaseType, engineForm],
  [CreateManagedServiceRequestSchema.field.version, versionForm],
  [UpgradeManagedServiceRequestSchema.field.version, versionForm],
  [CreateManagedServiceRequestSchema.field.parameters, parametersForm("string")],
  [UpdateConfigurationRequestSchema.field.parameters, parametersForm(["string", "null"])],
  [CreateManagedServiceRequestSchema.field.allowedCidrs, cidrForm],
  [UpdateManagedServiceRequestSchema.field.allowedCidrs, cidrForm],
  [AddNodeRequestSchema.field.role, { enum: ["replica"] }],
];
