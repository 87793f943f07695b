import type { ManagedService } from "@holdfast/sdk/responses.ts";
import type { ComponentChild } from "preact";
import { CompatibilityTab } from "../assessments/compatibility-tab.tsx";
import { IndicesTab } from "../indices/indices-tab.tsx";
import { QueryTab } from "../query/query-tab.tsx";
import { QueuesTab } from "../queues/queues-tab.tsx";
import { TopicsTab } from "../topics/topics-tab.tsx";
import { AlertsTab } from "./alerts-tab.tsx";
import { BackupsTab } from "./backups-tab.tsx";
import { ConfigurationTab } from "./configuration-tab.tsx";
import { ConnectionTab } from "./connection-tab.tsx";
import { consoleEngineOf } from "./engines/engines.ts";
import { LogsTab } from "./logs-tab.tsx";
import { MaintenanceTab } from "./maintenance-tab.tsx";
import { MetricsTab } from "./metrics-tab.tsx";
import { OverviewTab } from "./overview-tab.tsx";
import { PerformanceTab } from "./performance-tab.tsx";
import { ScalingTab } from "./scaling-tab.tsx";
import { ServiceEventsTab } from "./service-events-tab.tsx";
import { SettingsTab } from "./settings-tab.tsx";
import type { TabProps } from "./tab-props.ts";
import { UsersTab } from "./users-tab.tsx";

function hasQueries({ database_type: type }: ManagedService): boolean {
  return consoleEngineOf(type).firstQuery !== undefined;
}

/** A test of services whose engine has the part. */
function has(part: "hasQueues" | "hasTopics" | "hasIndices" | "hasAssessments") {
  return ({ database_type: type }: ManagedService) => consoleEngineOf(type)[part] === true;
}

interface ServiceTab {
  readonly name: string;
  readonly title: string;
  /** False for services without this tab. */
  readonly isFor?: (service: ManagedService) => boolean;
  readonly Tab: (props: TabProps) => ComponentChild;
}

/** The tabs of a service, in order. */
// biome-ignore format: a table, aligned so that it reads as one
export const serviceTabs: readonly ServiceTab[] = [
  { name: "overview",       title: "Overview",      Tab: OverviewTab },
  { name: "connection",     title: "Connection",    Tab: ConnectionTab },
  { name: "metrics",        title: "Metrics",       Tab: MetricsTab },
  { name: "alerts",         title: "Alerts",        Tab: AlertsTab },
  { name: "users",          title: "Users",         Tab: UsersTab },
  { name: "backups",        title: "Backups",       Tab: BackupsTab, isFor: ({ backups }) => backups !== null },
  { name: "logs",           title: "Logs",          Tab: LogsTab },
  { name: "events",         title: "Events",        Tab: ServiceEventsTab },
  { name: "query",          title: "Query",         Tab: QueryTab, isFor: hasQueries },
  { name: "performance",    title: "Performance",   Tab: PerformanceTab, isFor: hasQueries },
  { name: "queues",         title: "Queues",        Tab: QueuesTab, isFor: has("hasQueues") },
  { name: "topics",         title: "Topics",        Tab: TopicsTab, isFor: has("hasTopics") },
  { name: "indices",        title: "Indices",       Tab: IndicesTab, isFor: has("hasIndices") },
  { name: "compatibility",  title: "Compatibility", Tab: CompatibilityTab, isFor: has("hasAssessments") },
  { name: "scaling",        title: "Scaling",       Tab: ScalingTab },
  { name: "configuration",  title: "Configuration", Tab: ConfigurationTab },
  { name: "maintenance",    title: "Maintenance",   Tab: MaintenanceTab },
  { name: "settings",       title: "Settings",      Tab: SettingsTab },
];
