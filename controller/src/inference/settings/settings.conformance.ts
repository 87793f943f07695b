import { InferenceService, type PutInferenceSettingsRequestSchema } from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { casesOf, type Contract, objectScoped, ofOrganization } from "@holdfast/testing/contract/contract.ts";
import { type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const inferenceLimits = { monthly_cost_limit_cents: 1, eu_only: true, reset_circuit: true, alert_pct: 1 };

export default {
  authorization: [
    casesOf(InferenceService, {
      putInferenceSettings: objectScoped(({ organizationId }) => ({
        org_id: organizationId,
        monthly_cost_limit_cents: 1,
      })),
      getInferenceSettings: ofOrganization,
    }),
  ],
  sdk: [
    sdkCalls(InferenceService, {
      putInferenceSettings: (c) => c.inference.putSettings("i", inferenceLimits),
      getInferenceSettings: (c) => c.inference.settings("i"),
    }),
  ],
  sdkInputs: sameInputs<{
    inferenceSettings: SameInput<sdk.InferenceSettingsChange, typeof PutInferenceSettingsRequestSchema>;
  }>(),
  kindBounds: {
    "inference-settings": "one an organization",
  },
} satisfies Contract;
