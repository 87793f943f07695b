import {
  type CreateDatabaseUserRequestSchema,
  DatabaseUserService,
  type UpdateDatabaseUserRequestSchema,
} from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const user = objectScoped(({ serviceId }) => ({ service_id: serviceId, username: "app_user" }));

export default {
  authorization: [
    casesOf(DatabaseUserService, {
      listDatabaseUsers: ofService,
      createDatabaseUser: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        username: "thief",
        role: "admin",
      })),
      getDatabaseUser: user,
      updateDatabaseUser: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        username: "app_user",
        replication: true,
      })),
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
      createDatabaseUser: (c) => c.databaseUsers.create("i", { username: "u", role: "readonly", replication: true }),
      getDatabaseUser: (c) => c.databaseUsers.get("i", "u"),
      updateDatabaseUser: (c) => c.databaseUsers.update("i", "u", { replication: true }),
      deleteDatabaseUser: (c) => c.databaseUsers.delete("i", "u"),
      revealPassword: (c) => c.databaseUsers.revealPassword("i", "u"),
      resetPassword: (c) => c.databaseUsers.resetPassword("i", "u"),
    }),
  ],
  sdkInputs: sameInputs<{
    newDatabaseUser: SameInput<sdk.NewDatabaseUser, typeof CreateDatabaseUserRequestSchema>;
    databaseUserChange: SameInput<
      sdk.DatabaseUserChange & { readonly username: string },
      typeof UpdateDatabaseUserRequestSchema
    >;
  }>(),
  kindBounds: {
    "database-user": "limits of the service's engine",
  },
} satisfies Contract;
