import { AppAuthService } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import { casesOf, type Contract, objectScoped } from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const someUuid = "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10";
const app = objectScoped(({ appId }) => ({ app_id: appId }));

export default {
  authorization: [
    casesOf(AppAuthService, {
      revokeAuthSession: objectScoped(({ appId }) => ({ app_id: appId, session_id: someUuid })),
      eraseAuthUser: objectScoped(({ appId }) => ({ app_id: appId, user_id: someUuid })),
      deleteAuthUser: objectScoped(({ appId }) => ({ app_id: appId, email_or_user_id: someUuid })),
      createAuthUser: objectScoped(({ appId }) => ({ app_id: appId, email: "a@example.com" })),
      listAuthUsers: app,
      listAuthSessions: objectScoped(({ appId }) => ({ app_id: appId, user_id: someUuid })),
      listAuthEvents: app,
    }),
  ],
  sdk: [
    sdkCalls(AppAuthService, {
      revokeAuthSession: (c) => c.auth.revokeSession("i", "s"),
      eraseAuthUser: (c) => c.auth.eraseUser("i", "e", "u"),
      deleteAuthUser: (c) => c.auth.deleteUser("i", "u"),
      createAuthUser: (c) => c.auth.createUser("i", "e"),
      listAuthUsers: (c) => c.auth.users("i", { email: "e" }, page),
      listAuthSessions: (c) => c.auth.sessions("i", "u", page),
      listAuthEvents: (c) => c.auth.events("i", page),
    }),
  ],
  nameScopes: {
    "user-api.ts": "an app: addresses of its users",
  },
  sentSecrets: {
    "holdfast.v1.CreateAuthUserRequest.email": "an address, in the app's own database",
    "holdfast.v1.DeleteAuthUserRequest.email_or_user_id": "an address, not stored",
    "holdfast.v1.EraseAuthUserRequest.email": "an address, for the app's own database",
    "holdfast.v1.ListAuthUsersRequest.email": "an address, not stored",
  },
} satisfies Contract;
