import { LogLines } from "../logs/log-lines.tsx";
import type { TabProps } from "./tab-props.ts";

export function LogsTab({ service }: TabProps) {
  return <LogLines ownerId={service.id} />;
}
