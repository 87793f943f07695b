import { randomUUID } from "node:crypto";
import { metricCatalog } from "@holdfast/common/metric-catalog.ts";
import type { SchemaRule } from "@holdfast/gateway/openapi/schema-rules.ts";
import { CreateAlertRuleRequestSchema } from "@holdfast/proto/holdfast/v1/alert_pb.ts";
import { GetMetricsRequestSchema, ListMetricSamplesRequestSchema } from "@holdfast/proto/holdfast/v1/metric_pb.ts";
import { egressPart } from "#egress-system.ts";
import { fleetPart } from "#fleet/fleet-system.ts";
import { createMonitoredOwners } from "#fleet/owner/monitored-owners.ts";
import { ownerKinds } from "#fleet/owner/owner-kind.ts";
import { sampleSinkPart, storedSamplesPart } from "#fleet/session/sample-sink.ts";
import { taskKind } from "#fleet/task/task.ts";
import type { Use } from "#kernel/assembly.ts";
import type { Kernel } from "#kernel/kernel.ts";
import { type Contribution, definePart } from "#kernel/part.ts";
import { declareSystem } from "#kernel/system-declaration.ts";
import type { System } from "#kernel/system.ts";
import { channelUsers } from "#notify/channel/channel-api.ts";
import { channelKind } from "#notify/channel/channel.ts";
import { operationPart } from "#operation/operation-system.ts";
import { createEngineTasks } from "#services/service/engine-task.ts";
import { managedServiceKind } from "#services/service/managed-service.ts";
import { serviceAccessPart } from "#services/service/service-access.ts";
import { createAlertApi } from "./alert/alert-api.ts";
import { createAlertEvaluator } from "./alert/alert-evaluator.ts";
import { alertEventDefinitions } from "./alert/alert-event.ts";
import { alertRuleKind, alertRuleSetKind, alertSettingsKind, createRulesByService } from "./alert/alert-rule.ts";
import { createAlertRulesWork } from "./alert/alert-rules-reconciler.ts";
import { createChannelFor, createChannelUsers } from "./alert/rule-channels.ts";
import { createEvaluateRules } from "./alert/rule-evaluations.ts";
import { createAssessmentApi } from "./assessment/assessment-api.ts";
import { createEventApi, createEventPages } from "./event/event-api.ts";
import { createHealthApi } from "./health/health-api.ts";
import { createMetricApi } from "./metric/metric-api.ts";
import { createSampleCollector, type SampleCollector } from "./metric/sample-collector.ts";
import { createSamples, type Samples } from "./metric/samples/samples.ts";
import { createChatModel, type ModelSettings, modelSettings } from "./query-console/chat-model.ts";
import { createConsoleRunner } from "./query-console/console-runner.ts";
import { createGuardThreads } from "./query-console/guard-thread.ts";
import { createQueryConsoleApi } from "./query-console/query-console-api.ts";
import { createQueryApi } from "./query-stats/query-api.ts";
import { createStatisticsTasks } from "./query-stats/statistics-tasks.ts";

const sampleCollectorPart = definePart<SampleCollector>("collector of samples");
const samplesPart = definePart<Samples>("samples");

/**
 * Monitoring of services and other owners of machines: events, health, metrics and alert rules. For services also query
 * statistics and the query console.
 */
export const insightSystem = declareSystem({
  name: "insight",
  settings: modelSettings,
  events: alertEventDefinitions,
  audited: {
    "holdfast.v1.AlertService": "alert-rule",
    "holdfast.v1.QueryService": "managed-service",
    "holdfast.v1.QueryConsoleService": "managed-service",
    "holdfast.v1.AssessmentService": "managed-service",
  },
  contribute: contributeInsight,
  open: openInsightSystem,
});

function contributeInsight({ collections, history, ...kernel }: Kernel): readonly Contribution[] {
  const storedSamples = createSamples(history.sql);
  history.addTableMaintenance(storedSamples.rollUp);
  const collector = createSampleCollector({ ...kernel, storedSamples });
  const usersOf = createChannelUsers({
    rules: collections.open(alertRuleKind),
    alertSettings: collections.open(alertSettingsKind),
  });
  return [
    samplesPart.of(storedSamples),
    storedSamplesPart.of(storedSamples),
    sampleCollectorPart.of(collector),
    sampleSinkPart.of(collector),
    channelUsers.of({ kind: alertRuleKind.name, usersOf }),
  ];
}

function openInsightSystem(kernel: Kernel, use: Use, settings: ModelSettings): System {
  const { fleet, contents } = use(fleetPart);
  const [collector, storedSamples] = [use(sampleCollectorPart), use(samplesPart)];
  const { collections, shards } = kernel;
  const services = collections.open(managedServiceKind);
  const rules = collections.open(alertRuleKind);
  const ruleSets = collections.open(alertRuleSetKind);
  const alertSettings = collections.open(alertSettingsKind);
  const channels = collections.open(channelKind);
  const rulesByService = createRulesByService(rules);
  const access = use(serviceAccessPart);
  const owners = createMonitoredOwners(use(ownerKinds));
  const all = {
    ...kernel,
    fleet,
    contents,
    access,
    owners,
    storedSamples,
    services,
    rules,
    ruleSets,
    alertSettings,
    channels,
    rulesByService,
  };
  const channelFor = createChannelFor({ channels, alertSettings });
  const alerts = createAlertEvaluator({ ...all, samples: storedSamples, channelFor, ownership: shards });
  const events = createEventPages(all);
  const { asynchronous, taskIds: ids, addTaskSource } = use(operationPart);
  const statistics = createStatisticsTasks({ ...all, tasks: collections.open(taskKind), ids, newKey: randomUUID });
  addTaskSource(statistics.source);
  const guards = createGuardThreads();
  const { auditedActs } = kernel;
  const model = createChatModel(settings, { egress: use(egressPart).operators, log: kernel.log });
  return {
    name: "insight",
    rpcs: [
      createEventApi(events),
      createHealthApi({ ...all, events }),
      createMetricApi(all),
      createQueryApi({ ...all, tasks: createEngineTasks(all), statistics, asynchronous, auditedActs }),
      createAssessmentApi({ access, tasks: createEngineTasks(all), auditedActs }),
      createQueryConsoleApi({ runner: createConsoleRunner(all), guards, model, auditedActs }),
      createAlertApi({ ...all, evaluateRules: createEvaluateRules({ ...all, samples: storedSamples }) }),
    ],
    schemaRules: insightSchemaRules,
    work: [createAlertRulesWork(all)],
    metrics: [
      {
        name: "samples_waiting",
        help: "Samples of machines that wait to be inserted into the history",
        read: () => collector.waiting,
      },
      {
        name: "sample_lag_seconds",
        help: "Age of the newest sample at the last insert into the history",
        read: () => collector.lagS,
      },
    ],
    async close() {
      await alerts.stop();
      await collector.close();
      await guards.close();
    },
  };
}

const metric = { enum: metricCatalog.map(({ name }) => name) };

/** Restricts metric names to the names in the catalog. */
const insightSchemaRules: readonly SchemaRule[] = [
  [GetMetricsRequestSchema.field.metric, metric],
  [ListMetricSamplesRequestSchema.field.metric, metric],
  [CreateAlertRuleRequestSchema.field.metric, metric],
];
