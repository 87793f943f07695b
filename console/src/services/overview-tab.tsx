import type { Metrics } from "@holdfast/sdk/responses.ts";
import { rangeOfPeriod } from "../charts/chart-overlay.ts";
import { Chart } from "../charts/chart.tsx";
import { useLive } from "../live/use-live.ts";
import { ErrorNotice } from "../parts/notice.tsx";
import { Age, Badge, Card, Copyable, Facts, Loading } from "../parts/parts.tsx";
import { account } from "../session/account.ts";
import type { TabProps } from "./tab-props.ts";
import { toneOf } from "../tone.ts";
import { HealthCard } from "./health-card.tsx";
import { NodesCard } from "./nodes-card.tsx";
import { engineText } from "./service-view.ts";
import { costText } from "./services-page.tsx";
import { useCatalog } from "./use-catalog.ts";

/** The two metrics that every engine has, and the facts of the service. */
export function OverviewTab({ service, reload: reloadService }: TabProps) {
  const catalog = useCatalog();
  const { data, error, reload } = useLive<Metrics>(
    `overview metrics ${service.id}`,
    (signal) =>
      account.value.client.metrics.get(service.id, { metric: ["cpu", "connections"], period: "1h" }, { signal }),
    { service: service.id, pollIntervalMs: 15_000 },
  );
  const range = rangeOfPeriod("1h", Date.now());
  return (
    <>
      {data === undefined ? (
        error === undefined ? (
          <Loading rows={6} />
        ) : (
          <ErrorNotice error={error} onRetry={reload} />
        )
      ) : (
        <div class="halves">
          <Chart title="CPU, last hour" metric="cpu" metrics={data} range={range} />
          <Chart title="Connections, last hour" metric="connections" metrics={data} range={range} />
        </div>
      )}
      <Card title="About">
        <Facts
          facts={[
            ["Engine", engineText(catalog, service)],
            ["Plan", service.plan_name],
            ["Storage", `${service.storage_size_gb} GB ${service.storage_tier}`],
            ["Cost a month", costText(service, catalog)],
            ["Zone", service.zone],
            ["Created", <Age key="created" time={service.created_at} />],
            [
              "Health",
              <Badge key="health" tone={toneOf(service.health.status)}>
                {service.health.status}
              </Badge>,
            ],
            ["Clients from", service.allowed_cidrs.join(", ") || "nowhere"],
            ["Last backup", <Age key="backup" time={service.backups?.last_completed_at} />],
            ["Deletion protection", service.deletion_protection ? "on" : "off"],
          ]}
        />
      </Card>
      <HealthCard service={service} />
      <NodesCard service={service} reload={reloadService} />
      <Card title="Identifier">
        <Copyable text={service.id} label="id of the service" />
      </Card>
    </>
  );
}
