import { UserService } from "@holdfast/proto/holdfast/v1/user_pb.ts";
import {
  callerScoped,
  casesOf,
  type Contract,
  objectScoped,
  ofCaller,
  platformScoped,
} from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/api/rest-types.ts" {
  interface KnownTexts {
    readonly "holdfast.v1.Me": { readonly kind: "user" | "api_key" | "token" };
  }
}

export default {
  authorization: [
    casesOf(UserService, {
      createUser: callerScoped(() => ({ username: "new" })),
      resetUser: objectScoped(() => ({ user_id: "admin" })),
      deleteUser: objectScoped(() => ({ user_id: "admin" })),
      setUpUser: callerScoped(() => ({ token: "hfu_none", password: "a guessed password" })),
      changePassword: platformScoped(() => ({ current_password: "guess", new_password: "a guessed password" })),
      getMe: ofCaller,
    }),
  ],
  marked: ({ make, marker }) => make("/users", { username: marker }),
  sdk: [
    sdkCalls(UserService, {
      createUser: (c) => c.users.create("u"),
      resetUser: (c) => c.users.reset("u"),
      deleteUser: (c) => c.users.delete("u"),
      setUpUser: (c) => c.users.setUp("t", "p"),
      changePassword: (c) => c.users.changePassword("a", "b"),
      getMe: (c) => c.me(),
    }),
  ],
  listBounds: {
    "holdfast.v1.Me.organizations": "200; ListOrganizations has all",
    "holdfast.v1.Me.scopes": "all scopes that there are",
  },
  kindBounds: {
    "sign-in-sources": "one a user",
  },
  nameScopes: {
    "setup-tokens.ts": "global: the same names of users",
    "user-api.ts": "global: the same names of users; a setup token signs in",
  },
  sentSecrets: {
    "holdfast.v1.ChangePasswordRequest.current_password": "compared with a hash",
    "holdfast.v1.ChangePasswordRequest.new_password": "stored as a hash",
    "holdfast.v1.SetUpUserRequest.password": "stored as a hash",
    "holdfast.v1.SetUpUserRequest.token": "compared with a hash",
  },
} satisfies Contract;
