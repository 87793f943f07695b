import {
  type CreateDatabaseUserRequestSchema,
  DatabaseUserService,
} from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import { casesOf, type Contract, object, ofService } from "../../../../test/support/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "../../../../test/support/contract/sdk-calls.ts";

const user = object(({ serviceId }) => ({ service_id: serviceId, username: "app_user" }));

export default {
  authorization: [
    casesOf(DatabaseUserService, {
      listDatabaseUsers: ofService,
      createDatabaseUser: object(({ serviceId }) => ({ service_id: serviceId, username: "thief", role: "admin" })),
      getDatabaseUser: user,
      deleteDatabaseUser: user,
      revealPassword: user,
      resetPassword: user,
    }),
  ],
  marked: ({ make, marker, existing }) =>
    make(`/managed-services/${existing.serviceId}/database-users`, { username: marker, role: "readwrite" }),
  sdk: [
    sdkCalls(DatabaseUserService, {
      listDatabaseUsers: (c) => c.databaseUsers.list("i", page),
      createDatabaseUser: (c) => c.databaseUsers.create("i", { username: "u", role: "readonly" }),
      getDatabaseUser: (c) => c.databaseUsers.get("i", "u"),
      deleteDatabaseUser: (c) => c.databaseUsers.delete("i", "u"),
      revealPassword: (c) => c.databaseUsers.revealPassword("i", "u"),
      resetPassword: (c) => c.databaseUsers.resetPassword("i", "u"),
    }),
  ],
  sdkInputs: sameInputs<{
    newDatabaseUser: SameInput<sdk.NewDatabaseUser, typeof CreateDatabaseUserRequestSchema>;
  }>(),
  kindBounds: {
    "database-user": "limits of the service's engine",
  },
} satisfies Contract;
