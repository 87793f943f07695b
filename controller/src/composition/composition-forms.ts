import type { Form } from "@holdfast/gateway/openapi/forms.ts";
import { DeployProjectRequestSchema, PlanProjectRequestSchema } from "@holdfast/proto/holdfast/v1/project_pb.ts";
import type { ResourceKinds } from "#resource-kind/resource-kinds.ts";
import { descriptorSchema } from "./descriptor-schema.ts";

/** Descriptors are as /schemas/project.json has them. */
export function compositionForms(kinds: ResourceKinds): readonly Form[] {
  const { $schema: _dialect, ...descriptor } = descriptorSchema(kinds);
  return [
    [DeployProjectRequestSchema.field.descriptor, descriptor],
    [PlanProjectRequestSchema.field.descriptor, descriptor],
  ];
}
