import { randomUUID } from "node:crypto";
import { metricCatalog } from "@holdfast/common/metric-catalog.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import type { SchemaRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import { CreateAlertRuleRequestSchema } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { GetMetricsRequestSchema, ListMetricSamplesRequestSchema } from "@holdfast/proto/holdfast/v1/metric_pb.ts";
import type { FleetSystem } from "#fleet/fleet-system.ts";
import { taskKind } from "#fleet/task/task-object.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import type { System } from "#kernel/system.ts";
import { channelKind } from "#notify/channel/channel.ts";
import type { OperationSystem } from "#operation/operation-system.ts";
import { createEngineTasks } from "#services/service/engine-task.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { createAlertApi } from "./alert/alert-api.ts";
import { createAlertEvaluator } from "./alert/alert-evaluator.ts";
import { alertEventDefinitions } from "./alert/alert-event-definitions.ts";
import { alertRuleKind, alertRuleSetKind, alertSettingsKind, createRulesByService } from "./alert/alert-rule.ts";
import { createAlertRulesWork } from "./alert/alert-rules-reconciler.ts";
import { createChannelFor, createChannelUsers } from "./alert/rule-channels.ts";
import { createEvaluateRules } from "./alert/rule-evaluations.ts";
import { createEventApi, createEventPages, type EventPagesDeps } from "./event/event-api.ts";
import { createHealthApi } from "./health/health-api.ts";
import { createMetricApi } from "./metric/metric-api.ts";
import { createSampleCollector, type SampleCollector } from "./metric/sample-collector.ts";
import { createSamples, type Samples } from "./metric/samples/samples.ts";
import { createChatModel, type ModelSettings, modelSettings } from "./query-console/chat-model.ts";
import { createConsoleRunner } from "./query-console/console-runner.ts";
import { createGuardThread } from "./query-console/guard-thread.ts";
import { createQueryConsoleApi } from "./query-console/query-console-api.ts";
import { createQueryApi } from "./query-stats/query-api.ts";
import { createStatisticsTasks } from "./query-stats/statistics-tasks.ts";

interface InsightSystemDeps extends Pick<EventPagesDeps, "access"> {
  readonly fleet: Pick<FleetSystem, "fleet" | "contents">;
  readonly operation: Pick<OperationSystem, "taskIds" | "addTaskSource" | "asynchronous">;
  readonly samples: SampleCollector;
  readonly storedSamples: Samples;
  /** The client for servers that operators configure. */
  readonly operatorEgress: EgressClient;
}

/** Monitoring of services: events, health, metrics, alert rules, query statistics and the query console. */
export const insightSystem = declareSystem({
  name: "insight",
  settings: modelSettings,
  events: alertEventDefinitions,
  audited: {
    "holdfast.v1.AlertService": "alert-rule",
    "holdfast.v1.QueryService": "managed-service",
    "holdfast.v1.QueryConsoleService": "managed-service",
  },
  seams: (kernel) => {
    const storedSamples = createSamples(kernel.history.sql);
    kernel.history.addUpkeep(storedSamples.rollUp);
    return {
      storedSamples,
      samples: createSampleCollector({ ...kernel, storedSamples }),
      // Rules refer to channels, and channels must not import rules.
      usersOfChannel: createChannelUsers({
        rules: kernel.collections.open(alertRuleKind),
        alertSettings: kernel.collections.open(alertSettingsKind),
      }),
    };
  },
  open: openInsightSystem,
});

function openInsightSystem(
  kernel: Kernel,
  { fleet: { fleet, contents }, ...below }: InsightSystemDeps,
  settings: ModelSettings,
): System {
  const deps = { ...below, fleet, contents };
  const { collections, shards } = kernel;
  const services = collections.open(managedServiceKind);
  const rules = collections.open(alertRuleKind);
  const ruleSets = collections.open(alertRuleSetKind);
  const alertSettings = collections.open(alertSettingsKind);
  const channels = collections.open(channelKind);
  const rulesByService = createRulesByService(rules);
  const all = { ...kernel, ...deps, services, rules, ruleSets, alertSettings, channels, rulesByService };
  const channelFor = createChannelFor({ channels, alertSettings });
  const alerts = createAlertEvaluator({ ...all, samples: deps.storedSamples, channelFor, ownership: shards });
  const events = createEventPages(all);
  const { asynchronous, taskIds: ids, addTaskSource } = deps.operation;
  const statistics = createStatisticsTasks({ ...all, tasks: collections.open(taskKind), ids, newKey: randomUUID });
  addTaskSource(statistics.source);
  const guard = createGuardThread();
  const { auditNow } = kernel.outbox;
  const model = createChatModel(settings, { egress: deps.operatorEgress, log: kernel.log });
  return {
    name: "insight",
    rpcs: [
      createEventApi(events),
      createHealthApi({ ...all, events }),
      createMetricApi(all),
      createQueryApi({ ...all, tasks: createEngineTasks(all), statistics, asynchronous, auditNow }),
      createQueryConsoleApi({ runner: createConsoleRunner(all), guard, model, auditNow }),
      createAlertApi({ ...all, evaluateRules: createEvaluateRules({ ...all, samples: deps.storedSamples }) }),
    ],
    schemaRules: insightSchemaRules,
    work: [createAlertRulesWork(all)],
    metrics: [
      {
        name: "samples_waiting",
        help: "Samples of machines that wait to be inserted into the history",
        read: () => deps.samples.waiting,
      },
      {
        name: "sample_lag_seconds",
        help: "Age of the newest sample at the last insert into the history",
        read: () => deps.samples.lagS,
      },
    ],
    async close() {
      await alerts.stop();
      await deps.samples.close();
      await guard.close();
    },
  };
}

const metric = { enum: metricCatalog.map(({ name }) => name) };

/** Restricts metric names to those of the catalog. */
const insightSchemaRules: readonly SchemaRule[] = [
  [GetMetricsRequestSchema.field.metric, metric],
  [ListMetricSamplesRequestSchema.field.metric, metric],
  [CreateAlertRuleRequestSchema.field.metric, metric],
];
