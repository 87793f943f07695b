import { QueryService } from "@holdfast/proto/holdfast/v1/query_pb.ts";
import { TaskService } from "@holdfast/proto/holdfast/v1/task_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

export default {
  authorization: [
    casesOf(QueryService, {
      getQueryStatistics: ofService,
      startQueryStatistics: ofService,
      getQueryStatisticsTask: objectScoped(({ serviceId }) => ({ service_id: serviceId, task_id: "1a.guessed" })),
      listRunningQueries: ofService,
      cancelQuery: objectScoped(({ serviceId }) => ({ service_id: serviceId, query_run_id: "1-1" })),
      terminateQuery: objectScoped(({ serviceId }) => ({ service_id: serviceId, query_run_id: "1-1" })),
    }),
    casesOf(TaskService, {
      getTask: objectScoped(() => ({ task_id: "1a.guessed" })),
    }),
  ],
  sdk: [
    sdkCalls(QueryService, {
      getQueryStatistics: (c) => c.queries.top("i", { limit: 1, order: "calls" }),
      startQueryStatistics: (c) => c.queries.start("i", { limit: 1, sort_by: "rows" }),
      getQueryStatisticsTask: (c) => c.queries.statistics("i", "t"),
      listRunningQueries: (c) => c.queries.running("i"),
      cancelQuery: (c) => c.queries.cancel("i", "q"),
      terminateQuery: (c) => c.queries.terminate("i", "q"),
    }),
    sdkCalls(TaskService, {
      getTask: (c) => c.tasks.get("i"),
    }),
  ],
  listBounds: {
    "holdfast.v1.QueryStatistics.queries": "limit, 500 at most",
    "holdfast.v1.QueryStatisticsTask.queries": "limit, 500 at most",
    "holdfast.v1.RunningQueries.queries": "200, and a field for whether more exist",
    "holdfast.v1.RunningQuery.blocked_by": "sessions of one engine",
  },
} satisfies Contract;
