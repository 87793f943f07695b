import type { Metrics } from "@holdfast/sdk/responses.ts";
import { rangeOfPeriod } from "../charts/chart-overlay.ts";
import { Chart } from "../charts/chart.tsx";
import { useLive } from "../live/use-live.ts";
import { ErrorNotice } from "../parts/notice.tsx";
import { Age, Badge, Card, Copyable, Facts, Loading } from "../parts/parts.tsx";
import { HealthCard } from "../services/health-card.tsx";
import { costText } from "../services/services-page.tsx";
import type { TabProps } from "../services/tab-props.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account } from "../session/account.ts";
import { toneOf } from "../tone.ts";

const period = "24h";
/** Usage of the bucket, and the share of the disk that it takes. */
const usage = [
  ["files_bytes", "Bytes of objects, last day"],
  ["files_objects", "Objects, last day"],
  ["disk", "Used storage, last day"],
  ["files_requests_per_sec", "Requests, last day"],
] as const;

/** Usage of a files service, and its facts. */
export function FilesOverviewTab({ service }: TabProps) {
  const catalog = useCatalog();
  const { data, error, reload } = useLive<Metrics>(
    `files usage ${service.id}`,
    (signal) =>
      account.value.client.metrics.get(service.id, { metric: usage.map(([metric]) => metric), period }, { signal }),
    { service: service.id, pollIntervalMs: 15_000 },
  );
  const range = rangeOfPeriod(period, Date.now());
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
          {usage.map(([metric, title]) => (
            <Chart key={metric} title={title} metric={metric} metrics={data} range={range} />
          ))}
        </div>
      )}
      <Card title="About">
        <Facts
          facts={[
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
            ["Backups", "none"],
            ["Deletion protection", service.deletion_protection ? "on" : "off"],
          ]}
        />
      </Card>
      <HealthCard service={service} />
      <Card title="Identifier">
        <Copyable text={service.id} label="id of the files service" />
      </Card>
    </>
  );
}
