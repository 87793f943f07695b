import type { Form } from "@holdfast/gateway/openapi/forms.ts";
import { CreateApiKeyRequestSchema } from "@holdfast/proto/holdfast/v1/api_key_pb.ts";
import { CreateTokenRequestSchema } from "@holdfast/proto/holdfast/v1/token_pb.ts";
import type { Rights } from "./scopes.ts";

/** Scopes are those of the systems of this version. */
export function accessForms({ scopes }: Rights): readonly Form[] {
  const scope = { enum: scopes };
  return [
    [CreateApiKeyRequestSchema.field.scopes, scope],
    [CreateTokenRequestSchema.field.scopes, scope],
  ];
}
