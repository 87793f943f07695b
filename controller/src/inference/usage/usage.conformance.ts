import { type GetInferenceUsageRequestSchema, InferenceService } from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { casesOf, type Contract, objectScoped } from "@holdfast/testing/contract/contract.ts";
import { type SameInput, sameInputs, type sdk, sdkCalls, time } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(InferenceService, {
      getInferenceUsage: objectScoped(({ organizationId }) => ({ org_id: organizationId, group_by: "model" })),
    }),
  ],
  sdk: [
    sdkCalls(InferenceService, {
      getInferenceUsage: (c) => c.inference.usage("i", { group_by: "key", from: time, to: time }),
    }),
  ],
  sdkInputs: sameInputs<{
    inferenceUsage: SameInput<sdk.InferenceUsageQuery, typeof GetInferenceUsageRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.InferenceUsage.items": "1,000",
  },
} satisfies Contract;
