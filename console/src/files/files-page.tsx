import type { Catalog, ManagedService } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Card, Loading, PageHead } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { isOpen, monthlyCost, undeleteRefusal } from "../services/service-view.ts";
import { costText, ServiceState } from "../services/services-page.tsx";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { filesDefaults, type NewFilesInput, newFilesOf } from "./files-view.ts";

const maxServices = 200;

/** Files services of the organization, deleted ones that can be undeleted, and a form that creates one. */
export function FilesPage() {
  const catalog = useCatalog();
  const useList = (deleted: boolean) =>
    useLive<readonly ManagedService[]>(
      deleted ? "deleted files services" : "files services",
      async (signal) => {
        const list = account.value.client.files.list({ deleted }, { signal, limit: maxServices });
        for await (const { entries } of list.pages()) return entries;
        return [];
      },
      { pollIntervalMs: (data) => (data?.some(({ operation }) => isOpen(operation)) ? 1_000 : 15_000) },
    );
  const [live, deleted] = [useList(false), useList(true)];
  return (
    <>
      <PageHead title="Files" about="Object storage with the S3 API: one bucket each, without backups" />
      <LiveTable
        title="Files services"
        live={live}
        keyOf={({ id }) => id}
        icon="folder"
        empty="No files services yet"
        columns={[
          [
            "Name",
            ({ id, name }) => (
              <a class="strong" href={hrefOf("files", id)}>
                {name}
              </a>
            ),
          ],
          ["Status", (service) => <ServiceState service={service} />],
          ["Plan", ({ plan_name: plan }) => plan],
          ["Storage", ({ storage_size_gb: size }) => <span class="number">{size} GB</span>],
          ["Cost a month", (service) => <span class="number">{costText(service, catalog)}</span>],
          ["Created", ({ created_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">Create one below, then a key for your program. Any S3 client connects to it.</p>
      </LiveTable>
      {catalog === undefined ? <Loading rows={4} /> : <NewFiles catalog={catalog} />}
      {deleted.data !== undefined && deleted.data.length > 0 && (
        <LiveTable
          title="Deleted files services"
          live={deleted}
          keyOf={({ id }) => id}
          icon="folder"
          empty="No deleted files service"
          columns={[
            ["Name", ({ name }) => <b>{name}</b>],
            ["Deleted", ({ deleted_at: time }) => <Age time={time} />],
            ["Can be undeleted until", ({ undelete_until: time }) => <Age time={time} />],
            [
              "",
              (service) => (
                <ActionButton
                  refusal={refusalOf("files:write") ?? undeleteRefusal(service, Date.now())}
                  run={async () => {
                    const { id } = await account.value.client.files.undelete(service.id);
                    openPage(hrefOf("files", id));
                  }}
                >
                  Undelete<span class="visually-hidden"> {service.name}</span>
                </ActionButton>
              ),
            ],
          ]}
        />
      )}
    </>
  );
}

function NewFiles({ catalog }: { readonly catalog: Catalog }) {
  const form = useForm<NewFilesInput>(filesDefaults(catalog));
  const { values } = form;
  const { available, reason } = catalog.files;
  const cost = monthlyCost(catalog, {
    plan_name: values.plan,
    storage_tier: catalog.storage_tiers[0]?.storage_tier ?? "",
    storage_size_gb: Number(values.storageGb),
    nodes: 1,
  });
  return (
    <Card title="Create a files service">
      <FormBody
        form={form}
        action="Create files service"
        icon="plus"
        refusal={refusalOf("files:write") ?? (available ? undefined : (reason ?? "This installation cannot run one."))}
        send={async (input, idempotencyKey) => {
          const { id } = await account.value.client.files.create(newFilesOf(input), { idempotencyKey });
          openPage(hrefOf("files", id));
        }}
      >
        <div class="halves">
          <TextField
            label="Name"
            help="Lower-case letters, digits and hyphens; the name of the bucket begins with it"
            {...form.field("name")}
            autocomplete="off"
          />
          <SelectField
            label="Plan"
            {...form.field("plan", "plan_name")}
            options={catalog.plans.map(({ plan_name: plan, vcpu, memory_gb: memory }) => [
              plan,
              `${plan}: ${vcpu} vCPU, ${memory} GB`,
            ])}
          />
          <TextField
            label="Storage in GB"
            type="number"
            min={1}
            max={catalog.limits.storage_size_gb_max}
            {...form.field("storageGb", "storage_size_gb")}
          />
          <TextField
            label="Networks that may connect"
            help="CIDR ranges, separated by commas, such as 10.0.0.0/8"
            {...form.field("cidrs", "allowed_cidrs")}
          />
        </div>
        <p>
          <b>{cost === undefined ? "–" : priceText(cost, catalog.currency)}</b>
          <span class="quiet"> a month</span>
        </p>
      </FormBody>
    </Card>
  );
}
