import { ApiKeyService, type CreateApiKeyRequestSchema } from "@holdfast/proto/holdfast/v1/api_key_pb.ts";
import { callerScoped, casesOf, type Contract, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls, time } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/contract/contract.ts" {
  interface Existing {
    readonly keyId: string;
  }
}

export default {
  authorization: [
    casesOf(ApiKeyService, {
      createApiKey: callerScoped(() => ({ name: "new", scopes: ["keys:write"] })),
      listApiKeys: ofCaller,
      deleteApiKey: objectScoped(({ keyId }) => ({ id: keyId })),
      rotateApiKey: objectScoped(({ keyId }) => ({ id: keyId })),
    }),
  ],
  existing: async ({ make, marker }) => ({
    keyId: (await make("/api-keys", { name: marker, scopes: ["services:read"] })).id,
  }),
  sdk: [
    sdkCalls(ApiKeyService, {
      createApiKey: (c) => c.apiKeys.create({ name: "n", scopes: [], expires_at: time }),
      listApiKeys: (c) => c.apiKeys.list(page),
      deleteApiKey: (c) => c.apiKeys.delete("i"),
      rotateApiKey: (c) => c.apiKeys.rotate("i", 1),
    }),
  ],
  sdkInputs: sameInputs<{
    newApiKey: SameInput<sdk.NewApiKey, typeof CreateApiKeyRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.ApiKey.scopes": "the members of the request",
    "holdfast.v1.CreatedApiKey.scopes": "the members of the request",
  },
} satisfies Contract;
