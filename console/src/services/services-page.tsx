import type { Catalog, ManagedService } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { useLive } from "../live/use-live.ts";
import { ButtonLink } from "../parts/button.tsx";
import { TextField } from "../parts/field.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { Age, Badge, Card, Loading, PageHead } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { hrefOf, currentAddress, setQuery } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import { findServices } from "./find-services.ts";
import { engineText, isOpen, monthlyCost, stepText } from "./service-view.ts";
import { useCatalog } from "./use-catalog.ts";

const pageSize = 50;

interface ServicesOfPage {
  readonly services: readonly ManagedService[];
  readonly nextCursor: string | null;
}

/** The services of the organization, a page at a time. The filter by name and the page are in the address. */
export function ServicesPage() {
  const { query } = currentAddress.value;
  const name = query.get("name") ?? "";
  const cursor = query.get("cursor") ?? undefined;
  const catalog = useCatalog();
  const { data, error, reload } = useLive<ServicesOfPage>(
    `services ${name} ${cursor ?? ""}`,
    async (signal) => {
      const { services } = account.value.client;
      if (name !== "") return { services: await findServices(services, name, signal), nextCursor: null };
      const list = services.list({}, { signal, limit: pageSize, cursor });
      for await (const { entries, nextCursor } of list.pages()) return { services: entries, nextCursor };
      return { services: [], nextCursor: null };
    },
    { pollIntervalMs: (data) => (data?.services.some(({ operation }) => isOpen(operation)) ? 1_000 : 15_000) },
  );
  const create = (
    <ButtonLink kind="primary" icon="plus" href={hrefOf("services", "new")} refusal={refusalOf("services:write")}>
      Create service
    </ButtonLink>
  );
  const isEmpty = data !== undefined && data.services.length === 0 && name === "" && cursor === undefined;
  return (
    <>
      <PageHead
        title="Services"
        about="Managed databases of the organization"
        actions={
          <>
            <ButtonLink href={hrefOf("services", "deleted")}>Deleted services</ButtonLink>
            {!isEmpty && create}
          </>
        }
      />
      <ErrorNotice error={data === undefined ? error : undefined} onRetry={reload} />
      {isEmpty ? (
        <Card>
          <Empty icon="database" title="Create your first database">
            <p class="quiet">
              Choose an engine, a plan and a size. It runs in about a minute, with backups and a certificate.
            </p>
            {create}
          </Empty>
        </Card>
      ) : (
        <>
          <TextField
            label="Find by name"
            type="search"
            value={name}
            onInput={(value) => setQuery({ name: value })}
            autocomplete="off"
          />
          <Card flush>
            {data === undefined ? (
              <div class="body">
                <Loading />
              </div>
            ) : (
              <ServiceTable services={data.services} catalog={catalog} />
            )}
          </Card>
          <div class="row end">
            {cursor !== undefined && <ButtonLink href={hrefOf("services")}>First page</ButtonLink>}
            {data?.nextCursor != null && (
              <ButtonLink
                href={`${hrefOf("services")}?${new URLSearchParams({ name, cursor: data.nextCursor }).toString()}`}
              >
                Next page
              </ButtonLink>
            )}
          </div>
        </>
      )}
    </>
  );
}

interface TableProps {
  readonly services: readonly ManagedService[];
  readonly catalog: Catalog | undefined;
}

function ServiceTable({ services, catalog }: TableProps) {
  if (services.length === 0) return <Empty icon="search" title="No name contains this" />;
  return (
    <Table
      title="Services"
      entries={services}
      keyOf={({ id }) => id}
      columns={[
        [
          "Name",
          ({ id, name }) => (
            <a class="strong" href={hrefOf("services", id)}>
              {name}
            </a>
          ),
        ],
        ["Status", (service) => <ServiceState service={service} />],
        ["Engine", (service) => engineText(catalog, service)],
        ["Plan", ({ plan_name: plan }) => plan],
        ["Storage", ({ storage_size_gb: size }) => <span class="number">{size} GB</span>],
        ["Cost a month", (service) => <span class="number">{costText(service, catalog)}</span>],
        ["Created", ({ created_at: time }) => <Age time={time} />],
      ]}
    />
  );
}

/** Status, health unless it is healthy, and the step in progress. */
export function ServiceState({ service }: { readonly service: ManagedService }) {
  const { status, health, operation } = service;
  const isIll = status === "Running" && (health.status === "degraded" || health.status === "unhealthy");
  return (
    <span class="row">
      <Badge tone={toneOf(status)}>{status}</Badge>
      {isIll && <Badge tone={toneOf(health.status)}>{health.status}</Badge>}
      {isOpen(operation) && <span class="quiet small">{stepText(operation.step)}</span>}
    </span>
  );
}

/** The cost of a month at the catalog's prices. */
export function costText(service: ManagedService, catalog: Catalog | undefined): string {
  if (catalog === undefined) return "";
  const cost = monthlyCost(catalog, { ...service, nodes: Math.max(1, service.nodes.length) });
  return cost === undefined ? "unknown" : priceText(cost, catalog.currency);
}
