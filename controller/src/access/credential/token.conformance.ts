import { type CreateTokenRequestSchema, TokenService } from "@holdfast/proto/holdfast/v1/token_pb.ts";
import { callerScoped, casesOf, type Contract, objectScoped, ofCaller } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/api/rest-types.ts" {
  interface KnownTexts {
    readonly "holdfast.v1.TokenResource": { readonly kind: "managed-service" };
  }
}

declare module "@holdfast/testing/contract/contract.ts" {
  interface Existing {
    readonly tokenId: string;
  }
}

export default {
  authorization: [
    casesOf(TokenService, {
      createToken: callerScoped(() => ({ scopes: ["keys:write"], ttl_seconds: 60 })),
      listTokens: ofCaller,
      deleteToken: objectScoped(({ tokenId }) => ({ id: tokenId })),
    }),
  ],
  existing: async ({ make }) => ({
    tokenId: (await make("/tokens", { scopes: ["services:read"], ttl_seconds: 600 })).id,
  }),
  sdk: [
    sdkCalls(TokenService, {
      createToken: (c) => c.tokens.create({ scopes: [], ttl_seconds: 1, resources: [] }),
      listTokens: (c) => c.tokens.list(page),
      deleteToken: (c) => c.tokens.delete("i"),
    }),
  ],
  sdkInputs: sameInputs<{
    newToken: SameInput<sdk.NewToken, typeof CreateTokenRequestSchema>;
  }>(),
  listBounds: {
    "holdfast.v1.CreatedToken.resources": "the members of the request",
    "holdfast.v1.CreatedToken.scopes": "the members of the request",
    "holdfast.v1.Token.resources": "the members of the request",
    "holdfast.v1.Token.scopes": "the members of the request",
  },
} satisfies Contract;
