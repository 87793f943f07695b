import { AppAuthService } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { casesOf, type Contract, objectScoped } from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const uris = { redirect_uris: ["u"], post_logout_redirect_uris: ["u"], allowed_origins: ["o"] };

export default {
  authorization: [
    casesOf(AppAuthService, {
      createAuthClient: objectScoped(({ appId }) => ({ app_id: appId, name: "web", type: "public" })),
      listAuthClients: objectScoped(({ appId }) => ({ app_id: appId })),
      updateAuthClient: objectScoped(({ appId }) => ({ app_id: appId, client_id: "x", name: "web" })),
      deleteAuthClient: objectScoped(({ appId }) => ({ app_id: appId, client_id: "x" })),
      rotateAuthClientSecret: objectScoped(({ appId }) => ({ app_id: appId, client_id: "x" })),
    }),
  ],
  sdk: [
    sdkCalls(AppAuthService, {
      createAuthClient: (c) => c.auth.createClient("i", { name: "n", type: "public", require_pkce: true, ...uris }),
      listAuthClients: (c) => c.auth.clients("i"),
      updateAuthClient: (c) => c.auth.updateClient("i", "c", { name: "n", require_pkce: true, ...uris }),
      deleteAuthClient: (c) => c.auth.deleteClient("i", "c"),
      rotateAuthClientSecret: (c) => c.auth.rotateClientSecret("i", "c"),
    }),
  ],
  listBounds: {
    "holdfast.v1.AuthClient.allowed_origins": "the members of the request",
    "holdfast.v1.AuthClient.post_logout_redirect_uris": "the members of the request",
    "holdfast.v1.AuthClient.redirect_uris": "the members of the request",
    "holdfast.v1.ListAuthClientsResponse.clients": "20",
  },
} satisfies Contract;
