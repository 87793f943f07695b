import type { ComponentChild } from "preact";
import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { AlertRules } from "../alerts/alert-rules.tsx";
import { MetricCharts } from "../charts/metric-charts.tsx";
import { EventsTable } from "../events/events-table.tsx";
import { LivePage } from "../live/live-page.tsx";
import { useLive } from "../live/use-live.ts";
import { LogLines } from "../logs/log-lines.tsx";
import { OperationNotice } from "../operations/operation-notice.tsx";
import { Empty, Notice } from "../parts/notice.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { hrefOf } from "../router/location.ts";
import { SizeForm } from "../services/scaling-tab.tsx";
import { pollIntervalMsOf } from "../services/service-view.ts";
import { ServiceState } from "../services/services-page.tsx";
import type { TabProps } from "../services/tab-props.ts";
import { account } from "../session/account.ts";
import { FilesConnectionTab } from "./files-connection-tab.tsx";
import { FilesOverviewTab } from "./files-overview-tab.tsx";
import { FilesSettingsTab } from "./files-settings-tab.tsx";
import { KeysTab } from "./keys-tab.tsx";

interface FilesTab {
  readonly name: string;
  readonly title: string;
  readonly Tab: (props: TabProps) => ComponentChild;
}

const software = "files";

function FilesSizeTab({ service, reload }: TabProps) {
  const { files } = account.value.client;
  return (
    <SizeForm service={service} scope="files:write" change={(size) => files.update(service.id, size).then(reload)} />
  );
}

// biome-ignore format: a table, aligned so that it reads as one
const tabs: readonly FilesTab[] = [
  { name: "overview",   title: "Overview",   Tab: FilesOverviewTab },
  { name: "connection", title: "Connection", Tab: FilesConnectionTab },
  { name: "keys",       title: "Keys",       Tab: KeysTab },
  { name: "metrics",    title: "Metrics",    Tab: ({ service: { id } }) => <MetricCharts owner={{ id, software }} /> },
  { name: "alerts",     title: "Alerts",     Tab: ({ service: { id } }) => <AlertRules owner={{ id, software }} /> },
  { name: "logs",       title: "Logs",       Tab: ({ service: { id } }) => <LogLines ownerId={id} /> },
  { name: "events",     title: "Events",     Tab: ({ service: { id } }) => <EventsTable service={id} /> },
  { name: "scaling",    title: "Scaling",    Tab: FilesSizeTab },
  { name: "settings",   title: "Settings",   Tab: FilesSettingsTab },
];

/** The page of one files service: its heading, the operation in progress, and a tab. */
export function FilesServicePage({ id, tab = "overview" }: { readonly id: string; readonly tab: string | undefined }) {
  const live = useLive<ManagedService>(
    `files service ${id}`,
    (signal) => account.value.client.files.get(id, { signal }),
    { service: id, pollIntervalMs: pollIntervalMsOf },
  );
  const current = tabs.find(({ name }) => name === tab);
  return (
    <LivePage
      live={live}
      kind="files service"
      icon="folder"
      crumbs={<a href={hrefOf("files")}>Files</a>}
      title={({ name }) => name}
      beside={(service) => <ServiceState service={service} />}
    >
      {(service) => (
        <>
          <OperationNotice operation={service.operation} />
          {service.error !== null && (
            <Notice tone="bad">
              <b>The files service has failed.</b> {service.error.message}
            </Notice>
          )}
          <Tabs label="Parts of the files service" current={tab} path={["files", id]} tabs={tabs} />
          {current === undefined ? (
            <Empty icon="search" title="There is no such part of a files service" />
          ) : (
            <div class="stack" data-gap="l" key={tab}>
              <current.Tab service={service} reload={live.reload} />
            </div>
          )}
        </>
      )}
    </LivePage>
  );
}
