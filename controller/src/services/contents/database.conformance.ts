import { DatabaseService } from "@holdfast/proto/holdfast/v1/database_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(DatabaseService, {
      listDatabases: ofService,
      createDatabase: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "stolen" })),
      deleteDatabase: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "defaultdb" })),
    }),
  ],
  marked: ({ make, marker, existing }) => make(`/managed-services/${existing.serviceId}/databases`, { name: marker }),
  sdk: [
    sdkCalls(DatabaseService, {
      listDatabases: (c) => c.databases.list("i", page),
      createDatabase: (c) => c.databases.create("i", "n", { owner: "o" }),
      deleteDatabase: (c) => c.databases.delete("i", "n"),
    }),
  ],
} satisfies Contract;
