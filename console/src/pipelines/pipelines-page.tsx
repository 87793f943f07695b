import type { Pipeline, PipelineTemplate } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ChoiceField, SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Age, Badge, Card, Loading, PageHead } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { pipelineTone, templateDetail } from "./pipeline-view.ts";

/** Pipelines of the organization, and the creation of one from a template. */
export function PipelinesPage() {
  const live = useLive<readonly Pipeline[]>(
    "pipelines",
    (signal) => account.value.client.pipelines.list({ signal }).toArray(),
    { pollIntervalMs: 15_000 },
  );
  return (
    <>
      <PageHead title="Pipelines" about="Databases that are created together and used together" />
      <LiveTable
        title="Pipelines"
        live={live}
        keyOf={({ id }) => id}
        icon="flow"
        empty="No pipelines yet"
        columns={[
          [
            "Name",
            ({ id, name }) => (
              <a class="strong" href={hrefOf("pipelines", id)}>
                {name}
              </a>
            ),
          ],
          ["State", ({ status }) => <Badge tone={pipelineTone(status)}>{status}</Badge>],
          ["Template", ({ template_id: template }) => template],
          ["Zone", ({ zone }) => zone],
          ["Created", ({ created_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">Choose a template below. All of its databases are created in one step.</p>
      </LiveTable>
      <NewPipeline />
    </>
  );
}

function NewPipeline() {
  const catalog = useCatalog();
  const { pipelines } = account.value.client;
  const templates = useLive<readonly PipelineTemplate[]>("pipeline templates", (signal) =>
    pipelines.templates({ signal }).toArray(),
  );
  const form = useForm({ name: "", template: "", zone: "" });
  if (templates.data === undefined || catalog === undefined)
    return (
      <Card title="Create a pipeline">
        {templates.error === undefined ? (
          <Loading />
        ) : (
          <ErrorNotice error={templates.error} onRetry={templates.reload} />
        )}
      </Card>
    );
  const chosen = templates.data.find(({ id }) => id === form.values.template);
  const zone = form.values.zone || catalog.zones[0]?.zone || "";
  return (
    <Card title="Create a pipeline">
      <FormBody
        form={form}
        action="Create pipeline"
        kind="primary"
        refusal={
          refusalOf("pipelines:write") ??
          refusalOf("services:write") ??
          (chosen === undefined ? "Choose a template first." : undefined)
        }
        send={async ({ name, template }, idempotencyKey) => {
          const { id } = await pipelines.create({ template_id: template, name, zone }, { idempotencyKey });
          openPage(hrefOf("pipelines", id));
        }}
      >
        <div class="halves">
          <TextField label="Name" {...form.field("name")} autocomplete="off" />
          <SelectField
            label="Zone"
            value={zone}
            options={catalog.zones.map(({ zone: id, title }) => [id, title] as const)}
            onInput={(value) => form.set("zone", value)}
            fault={form.fault("zone")}
          />
        </div>
        <ChoiceField
          label="Template"
          name="template"
          value={form.values.template}
          onInput={(value) => form.set("template", value)}
          choices={templates.data.map((template) => ({
            value: template.id,
            title: template.name,
            detail: templateDetail(template),
            refusal: template.unavailable_reason ?? undefined,
          }))}
          fault={form.fault("template_id")}
        />
        {chosen !== undefined && chosen.estimated_monthly_cost !== null && (
          <p class="price">{priceText(chosen.estimated_monthly_cost, chosen.currency)} a month</p>
        )}
      </FormBody>
    </Card>
  );
}
