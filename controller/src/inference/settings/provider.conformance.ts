import { InferenceService, type PutInferenceProviderRequestSchema } from "@holdfast/proto/holdfast/v1/inference_pb.ts";
import { casesOf, type Contract, objectScoped, ofOrganization } from "@holdfast/testing/contract/contract.ts";
import { type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const inferenceProvider = {
  provider: "p",
  api_key: "k",
  enabled: true,
  base_url: "u",
  eu_endpoint: true,
  ca_certificate: "c",
};

export default {
  authorization: [
    casesOf(InferenceService, {
      putInferenceProvider: objectScoped(({ organizationId }) => ({
        org_id: organizationId,
        provider: "provider_a",
        api_key: "stolen",
      })),
      listInferenceProviders: ofOrganization,
      deleteInferenceProvider: objectScoped(({ organizationId }) => ({
        org_id: organizationId,
        provider: "provider_a",
      })),
    }),
  ],
  sdk: [
    sdkCalls(InferenceService, {
      putInferenceProvider: (c) => c.inference.putProvider("i", inferenceProvider),
      listInferenceProviders: (c) => c.inference.providers("i"),
      deleteInferenceProvider: (c) => c.inference.deleteProvider("i", "p"),
    }),
  ],
  sdkInputs: sameInputs<{
    inferenceProvider: SameInput<sdk.InferenceProviderChange, typeof PutInferenceProviderRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.ListInferenceProvidersResponse.providers": "50",
  },
  sentSecrets: {
    "holdfast.v1.PutInferenceProviderRequest.api_key": "bound",
  },
} satisfies Contract;
