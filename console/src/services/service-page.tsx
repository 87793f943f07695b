import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { LivePage } from "../live/live-page.tsx";
import { useLive } from "../live/use-live.ts";
import { OperationNotice } from "../operations/operation-notice.tsx";
import { Empty, Notice } from "../parts/notice.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { hrefOf } from "../router/location.ts";
import { account } from "../session/account.ts";
import { pollIntervalMsOf } from "./service-view.ts";
import { serviceTabs } from "./service-tabs.ts";
import { ServiceState } from "./services-page.tsx";
import { StorageNotice } from "./storage-notice.tsx";

interface ServicePageProps {
  readonly id: string;
  readonly tab: string | undefined;
}

/** The page of one service: its heading, the operation in progress, and a tab. */
export function ServicePage({ id, tab = "overview" }: ServicePageProps) {
  const live = useLive<ManagedService>(`service ${id}`, (signal) => account.value.client.services.get(id, { signal }), {
    service: id,
    pollIntervalMs: pollIntervalMsOf,
  });
  const current = serviceTabs.find(({ name }) => name === tab);
  return (
    <LivePage
      live={live}
      kind="service"
      icon="database"
      crumbs={<a href={hrefOf("services")}>Services</a>}
      title={({ name }) => name}
      beside={(service) => <ServiceState service={service} />}
    >
      {(service) => (
        <>
          <OperationNotice operation={service.operation} />
          {service.error !== null && (
            <Notice tone="bad">
              <b>The service has failed.</b> {service.error.message}
            </Notice>
          )}
          <StorageNotice service={service} reload={live.reload} />
          <Tabs
            label="Parts of the service"
            current={tab}
            path={["services", id]}
            tabs={serviceTabs.filter(({ isFor }) => isFor === undefined || isFor(service))}
          />
          {current === undefined ? (
            <Empty icon="search" title="There is no such part of a service" />
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
