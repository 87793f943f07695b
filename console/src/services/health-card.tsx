import type { Health } from "@holdfast/sdk/responses.ts";
import { labelOf } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Age, Badge } from "../parts/parts.tsx";
import { account } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import type { TabProps } from "./tab-props.ts";

/** The checks of a service that are not healthy, each with its reason. */
export function HealthCard({ service }: Pick<TabProps, "service">) {
  const live = useLive<Health>(
    `health ${service.id}`,
    (signal) => account.value.client.health.get(service.id, { signal }),
    { service: service.id, pollIntervalMs: 15_000 },
  );
  const checks = live.data?.checks;
  const nodeOf = (id: string) => service.nodes.find((node) => node.id === id)?.hostname ?? "";
  return (
    <LiveTable
      title="Health"
      live={{ ...live, data: checks?.filter(({ status }) => status !== "healthy") }}
      keyOf={(check) => `${check.name} ${check.node_id}`}
      icon="check"
      empty={healthyText(checks?.length ?? 0)}
      columns={[
        ["Check", ({ name }) => labelOf(name)],
        ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
        ["Since", ({ since }) => (since === null ? "" : <Age time={since} />)],
        ["Reason", ({ reason }) => reason ?? ""],
        ["Node", ({ node_id: id }) => <span class="mono small">{nodeOf(id)}</span>],
      ]}
    />
  );
}

/** The text for a service whose checks are all healthy. */
function healthyText(checks: number): string {
  if (checks === 0) return "No check has run yet";
  return checks === 1 ? "1 check is healthy" : `${checks} checks are healthy`;
}
