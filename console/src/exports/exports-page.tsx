import type { DestinationType, ExportDataType, ManagedService, MetricsExport } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Badge, Card, PageHead } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { DestinationFields } from "./destination-fields.tsx";
import { configurationOf, destinations, exportState } from "./export-view.ts";

const maxExports = 200;

/** Exports of metrics and logs to monitoring systems. */
export function ExportsPage() {
  const { exports, services } = account.value.client;
  const live = useLive<readonly MetricsExport[]>(
    "exports",
    async (signal) => (await exports.page({ limit: maxExports }, { signal })).integrations,
    { pollIntervalMs: 15_000 },
  );
  const all = useLive<readonly ManagedService[]>("services of exports", async (signal) => {
    for await (const { entries } of services.list({}, { signal, limit: 200 }).pages()) return entries;
    return [];
  });
  const nameOf = (id: string | null) =>
    id === null ? "all services" : (all.data?.find((service) => service.id === id)?.name ?? id);
  return (
    <>
      <PageHead title="Exports" about="Metrics and logs, pushed to your monitoring systems" />
      <LiveTable
        title="Exports"
        live={live}
        keyOf={({ id }) => id}
        icon="send"
        empty="No exports yet"
        columns={[
          [
            "Name",
            ({ id, name }) => (
              <a class="strong" href={hrefOf("exports", id)}>
                {name}
              </a>
            ),
          ],
          ["State", (integration) => <ExportState integration={integration} />],
          ["Destination", ({ destination_type: type }) => destinations[type].title],
          ["Services", ({ service_id: id }) => nameOf(id)],
          ["Data", ({ data_type: data }) => data],
          ["Last delivery", ({ last_export_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">Choose a destination below. Delivery begins within a minute.</p>
      </LiveTable>
      <NewExport services={all.data ?? []} />
    </>
  );
}

export function ExportState({ integration }: { readonly integration: MetricsExport }) {
  const { text, tone } = exportState(integration);
  return <Badge tone={tone}>{text}</Badge>;
}

interface Input extends Readonly<Record<string, string>> {
  readonly name: string;
  readonly service: string;
  readonly type: DestinationType;
  readonly data: string;
}

function NewExport({ services }: { readonly services: readonly ManagedService[] }) {
  const form = useForm<Input>({ name: "", service: "", type: "prometheus_remote_write", data: "" });
  const { data, fields } = destinations[form.values.type];
  const chosen = data.find((each) => each === form.values.data) ?? data[0] ?? "metrics";
  const refusal =
    refusalOf("exports:write") ??
    (form.values.service === "" ? refusalOf("org:write") : undefined) ??
    (chosen === "metrics" ? undefined : refusalOf("services:data"));
  return (
    <Card title="Add an export">
      <FormBody
        form={form}
        action="Add export"
        icon="plus"
        refusal={refusal}
        send={async (values, idempotencyKey) => {
          const body = {
            name: values.name,
            destination_type: values.type,
            data_type: chosen,
            configuration: configurationOf(values.type, values),
            ...(values.service !== "" && { service_id: values.service }),
          };
          const { id } = await account.value.client.exports.create(body, { idempotencyKey });
          openPage(hrefOf("exports", id));
        }}
      >
        <div class="halves">
          <TextField label="Name" {...form.field("name")} autocomplete="off" />
          <SelectField
            label="Services"
            {...form.field("service", "service_id")}
            options={[["", "All services"], ...services.map(({ id, name }) => [id, name] as const)]}
          />
          <SelectField
            label="Destination"
            value={form.values.type}
            onInput={(type) => form.set("type", type as DestinationType)}
            options={Object.entries(destinations).map(([type, { title }]) => [type, title] as const)}
            fault={form.fault("destination_type")}
          />
          <SelectField
            label="Data"
            value={chosen}
            onInput={(each) => form.set("data", each)}
            options={data.map((each: ExportDataType) => [each, each === "both" ? "metrics and logs" : each] as const)}
            fault={form.fault("data_type")}
          />
          <DestinationFields form={form} fields={fields} />
        </div>
        <p class="quiet small">
          Headers, labels and tags of a destination are set by <code>holdfast exports create</code>.
        </p>
      </FormBody>
    </Card>
  );
}
