import { MetricCharts } from "../charts/metric-charts.tsx";
import type { TabProps } from "./tab-props.ts";

export function MetricsTab({ service: { id, database_type: software } }: TabProps) {
  return <MetricCharts owner={{ id, software }} />;
}
