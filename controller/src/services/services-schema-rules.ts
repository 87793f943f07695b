import { databaseEngines } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Parameter } from "@holdfast/common/engine-catalog/parameter.ts";
import type { SchemaRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import { UpdateConfigurationRequestSchema } from "@holdfast/proto/holdfast/v1/configuration_pb.ts";
import {
  CreateFilesServiceRequestSchema,
  UpdateFilesServiceRequestSchema,
} from "@holdfast/proto/holdfast/v1/files_pb.ts";
import { UpgradeManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import {
  CreateManagedServiceRequestSchema,
  UpdateManagedServiceRequestSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { AddNodeRequestSchema } from "@holdfast/proto/holdfast/v1/node_pb.ts";
import { cidrSchema } from "./service/network/allowed-cidrs.ts";

type JsonSchema = Readonly<Record<string, unknown>>;

/** Schema of the parameters of all engines. The catalog has the limits of numbers, with their units. */
function parametersSchema(type: "string" | readonly string[]): JsonSchema {
  const valueOf = ({ description, values }: Parameter) => ({
    type,
    description,
    ...(values.length > 0 && { enum: type === "string" ? values : [...values, null] }),
  });
  return {
    anyOf: databaseEngines.map(({ title, parameters }) => ({
      title,
      properties: Object.fromEntries(parameters.map((parameter) => [parameter.name, valueOf(parameter)])),
      additionalProperties: false,
    })),
  };
}

const engineSchema = { enum: databaseEngines.flatMap(({ engine, aliases = [] }) => [engine, ...aliases]) };
const versionSchema = { enum: databaseEngines.flatMap(({ versions }) => versions) };

/** OpenAPI schemas that list the engines of this release with their parameters and versions. */
export const servicesSchemaRules: readonly SchemaRule[] = [
  [CreateManagedServiceRequestSchema.field.databaseType, engineSchema],
  [CreateManagedServiceRequestSchema.field.version, versionSchema],
  [UpgradeManagedServiceRequestSchema.field.version, versionSchema],
  [CreateManagedServiceRequestSchema.field.parameters, parametersSchema("string")],
  [UpdateConfigurationRequestSchema.field.parameters, parametersSchema(["string", "null"])],
  [CreateManagedServiceRequestSchema.field.allowedCidrs, cidrSchema],
  [UpdateManagedServiceRequestSchema.field.allowedCidrs, cidrSchema],
  [CreateFilesServiceRequestSchema.field.allowedCidrs, cidrSchema],
  [UpdateFilesServiceRequestSchema.field.allowedCidrs, cidrSchema],
  [AddNodeRequestSchema.field.role, { enum: ["replica"] }],
];
