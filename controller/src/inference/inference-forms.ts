import type { Catalog } from "@holdfast/common/inference/catalog.ts";
import type { Form } from "@holdfast/gateway/openapi/forms.ts";
import { PutInferenceProviderRequestSchema } from "@holdfast/proto/holdfast/v1/inference_pb.ts";

/** Without a query and a fragment. */
const baseUrlForm = { format: "uri", pattern: '^[hH][tT][tT][pP][sS]://[!"$-.0->@-\\[\\]-~][!"$->@-\\[\\]-~]*$' };

/** Providers are those of the installation's catalog. */
export function inferenceForms({ providers }: Catalog): readonly Form[] {
  return [
    [PutInferenceProviderRequestSchema.field.provider, { enum: providers.map(({ name }) => name) }],
    [PutInferenceProviderRequestSchema.field.baseUrl, baseUrlForm],
  ];
}
