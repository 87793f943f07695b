import { createMachineTasks, type MachineTaskDeps, type MachineTasks } from "#services/service/machine-task-source.ts";
import { statisticsJson } from "./statistics-json.ts";

/** Statistics of queries that are answered later. */
export function createStatisticsTasks(deps: MachineTaskDeps): MachineTasks {
  return createMachineTasks(
    {
      type: "query_stats",
      scope: "services:read",
      resultOf: (output) => (output.case === "readQueryStatistics" ? statisticsJson(output.value) : "null"),
    },
    deps,
  );
}
