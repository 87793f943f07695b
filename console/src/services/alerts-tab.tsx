import { AlertRules } from "../alerts/alert-rules.tsx";
import type { TabProps } from "./tab-props.ts";

export function AlertsTab({ service: { id, database_type: software } }: TabProps) {
  return <AlertRules owner={{ id, software }} />;
}
