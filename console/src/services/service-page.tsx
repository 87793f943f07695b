import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { NotFound } from "@holdfast/sdk/errors.ts";
import { useLive } from "../live/use-live.ts";
import { Empty, ErrorNotice, Notice } from "../parts/notice.tsx";
import { Loading, PageHead } from "../parts/parts.tsx";
import { hrefOf } from "../router/location.ts";
import { account } from "../session/account.ts";
import { OperationNotice } from "./operation-notice.tsx";
import { pollIntervalMsOf } from "./service-view.ts";
import { serviceTabs } from "./service-tabs.ts";
import { ServiceState } from "./services-page.tsx";

interface ServicePageProps {
  readonly id: string;
  readonly tab: string | undefined;
}

/** The page of one service: its heading, the operation in progress, and a tab. */
export function ServicePage({ id, tab = "overview" }: ServicePageProps) {
  const { data, error, reload } = useLive<ManagedService>(
    `service ${id}`,
    (signal) => account.value.client.services.get(id, { signal }),
    { service: id, pollIntervalMs: pollIntervalMsOf },
  );
  const crumbs = <a href={hrefOf("services")}>Services</a>;
  if (error instanceof NotFound)
    return (
      <>
        <PageHead title="Service" crumbs={crumbs} />
        <Empty icon="database" title="There is no such service">
          <p class="quiet">It was deleted, or belongs to another organization.</p>
        </Empty>
      </>
    );
  if (data === undefined)
    return (
      <>
        <PageHead title="Service" crumbs={crumbs} />
        {error === undefined ? <Loading rows={6} /> : <ErrorNotice error={error} onRetry={reload} />}
      </>
    );
  const current = serviceTabs.find(({ name }) => name === tab);
  return (
    <>
      <PageHead title={data.name} crumbs={crumbs} beside={<ServiceState service={data} />} />
      <OperationNotice service={data} />
      {data.error !== null && (
        <Notice tone="bad">
          <b>The service has failed.</b> {data.error.message}
        </Notice>
      )}
      <nav class="tabs" aria-label="Parts of the service">
        {serviceTabs
          .filter(({ isFor }) => isFor === undefined || isFor(data))
          .map(({ name, title }) => (
            <a
              key={name}
              href={name === "overview" ? hrefOf("services", id) : hrefOf("services", id, name)}
              aria-current={name === tab ? "page" : undefined}
            >
              {title}
            </a>
          ))}
      </nav>
      {current === undefined ? (
        <Empty icon="search" title="There is no such part of a service" />
      ) : (
        <div class="stack" data-gap="l" key={tab}>
          <current.Tab service={data} reload={reload} />
        </div>
      )}
    </>
  );
}
