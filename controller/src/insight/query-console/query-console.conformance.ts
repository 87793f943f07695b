import { QueryConsoleService } from "@holdfast/proto/holdfast/v1/query_console_pb.ts";
import { casesOf, type Contract, objectScoped } from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

declare module "@holdfast/testing/api/rest-types.ts" {
  interface KnownTexts {
    readonly "holdfast.v1.QueryResult": { readonly rows: readonly (readonly (string | number | boolean | null)[])[] };
  }
}

export default {
  authorization: [
    casesOf(QueryConsoleService, {
      translateQuestion: objectScoped(({ serviceId }) => ({ service_id: serviceId, question: "how many?" })),
      executeQuery: objectScoped(({ serviceId }) => ({ service_id: serviceId, sql: "SELECT 1" })),
    }),
  ],
  sdk: [
    sdkCalls(QueryConsoleService, {
      translateQuestion: (c) => c.queries.translate("i", { question: "q", database_name: "d" }),
      executeQuery: (c) => c.queries.execute("i", { sql: "s", database_name: "d" }),
    }),
  ],
  listBounds: {
    "holdfast.v1.QueryResult.columns": "1,600, as many as a row of PostgreSQL has",
  },
} satisfies Contract;
