import {
  type CreateInferenceKeyRequestSchema,
  InferenceService,
  type UpdateInferenceKeyRequestSchema,
} from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { casesOf, type Contract, objectScoped, ofOrganization } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls, time } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/contract/contract.ts" {
  interface Existing {
    readonly inferenceKeyId: string;
  }
}

const inferenceKey = objectScoped(({ organizationId, inferenceKeyId }) => ({
  org_id: organizationId,
  id: inferenceKeyId,
}));
const keyLimits = { monthly_token_limit: 1, rate_limit_rpm: 1, expires_at: time };

export default {
  authorization: [
    casesOf(InferenceService, {
      createInferenceKey: objectScoped(({ organizationId }) => ({ org_id: organizationId, name: "stolen" })),
      listInferenceKeys: ofOrganization,
      getInferenceKey: inferenceKey,
      updateInferenceKey: objectScoped(({ organizationId, inferenceKeyId }) => ({
        org_id: organizationId,
        id: inferenceKeyId,
        name: "stolen",
      })),
      deleteInferenceKey: inferenceKey,
      rotateInferenceKey: inferenceKey,
    }),
  ],
  existing: async ({ make, marker, existing }) => {
    const path = `/organizations/${existing.organizationId}/inference/keys`;
    return { inferenceKeyId: (await make(path, { name: marker })).id };
  },
  sdk: [
    sdkCalls(InferenceService, {
      createInferenceKey: (c) => c.inference.createKey("i", { name: "n", ...keyLimits }),
      listInferenceKeys: (c) => c.inference.keys("i", page),
      getInferenceKey: (c) => c.inference.getKey("i", "k"),
      updateInferenceKey: (c) => c.inference.updateKey("i", "k", { name: "n", status: "suspended", ...keyLimits }),
      deleteInferenceKey: (c) => c.inference.deleteKey("i", "k"),
      rotateInferenceKey: (c) => c.inference.rotateKey("i", "k"),
    }),
  ],
  sdkInputs: sameInputs<{
    newInferenceKey: SameInput<sdk.NewInferenceKey, typeof CreateInferenceKeyRequestSchema>;
    inferenceKeyChange: SameInput<sdk.InferenceKeyChange, typeof UpdateInferenceKeyRequestSchema>;
  }>(),
} satisfies Contract;
