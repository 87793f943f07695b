import { AppAuthService } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { casesOf, type Contract, objectScoped } from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(AppAuthService, {
      putAuthIdpProvider: objectScoped(({ appId }) => ({ app_id: appId, provider: "google", client_id: "x" })),
      deleteAuthIdpProvider: objectScoped(({ appId }) => ({ app_id: appId, provider: "google" })),
    }),
  ],
  sdk: [
    sdkCalls(AppAuthService, {
      putAuthIdpProvider: (c) =>
        c.auth.putProvider("i", "oidc", {
          client_id: "c",
          client_secret: "s",
          issuer_url: "u",
          scopes: ["profile"],
          ca_certificate: "p",
        }),
      deleteAuthIdpProvider: (c) => c.auth.deleteProvider("i", "google"),
    }),
  ],
  listBounds: {
    "holdfast.v1.AuthIdpProvider.scopes": "the members of the request",
  },
  sentSecrets: {
    "holdfast.v1.PutAuthIdpProviderRequest.client_secret": "bound",
  },
} satisfies Contract;
