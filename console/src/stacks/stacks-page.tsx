import { useState } from "preact/hooks";
import type { Stack, StackPreview, StackTemplate } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Button } from "../parts/button.tsx";
import { CheckField, ChoiceField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Loading, PageHead } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { useAction } from "../parts/use-action.ts";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { pollMsOf, toneOf } from "../tone.ts";

/** Stacks of the organization, and the launch of one at an accepted cost. */
export function StacksPage() {
  const catalog = useCatalog();
  const live = useLive<readonly Stack[]>("stacks", (signal) => account.value.client.stacks.list({ signal }).toArray(), {
    pollIntervalMs: (data) => pollMsOf(data?.map(({ status }) => status)),
  });
  return (
    <>
      <PageHead title="Stacks" about="Resources that are launched from a template, and upgraded together" />
      <LiveTable
        title="Stacks"
        live={live}
        keyOf={({ id }) => id}
        icon="stack"
        empty="No stacks yet"
        columns={[
          [
            "Name",
            ({ id, name }) => (
              <a class="strong" href={hrefOf("stacks", id)}>
                {name}
              </a>
            ),
          ],
          ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
          ["Template", (stack) => `${stack.template_name} ${stack.template_version}`],
          ["Cost a month", ({ monthly_cost: cost }) => catalog && priceText(cost, catalog.currency)],
          ["Created", ({ created_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">Choose a template below: its cost is computed before anything is created.</p>
      </LiveTable>
      <Launch />
    </>
  );
}

function Launch() {
  const { stacks } = account.value.client;
  const templates = useLive<readonly StackTemplate[]>("stack templates", (signal) =>
    stacks.templates({ signal }).toArray(),
  );
  const [preview, setPreview] = useState<StackPreview | undefined>();
  const form = useForm({ name: "", template: "", isAccepted: false });
  const pricing = useAction();
  const { template } = form.values;
  const isPriced = preview?.template_name === template;
  const compute = () => pricing.run(async () => setPreview(await stacks.preview(template)));
  if (templates.data === undefined)
    return (
      <Card title="Launch a stack">
        {templates.error === undefined ? (
          <Loading />
        ) : (
          <ErrorNotice error={templates.error} onRetry={templates.reload} />
        )}
      </Card>
    );
  return (
    <Card title="Launch a stack">
      <FormBody
        form={form}
        action="Launch at this cost"
        kind="primary"
        refusal={
          refusalOf("stacks:write") ??
          (template === "" ? "Choose a template first." : undefined) ??
          (isPriced ? undefined : "Compute the cost first.") ??
          (form.values.isAccepted ? undefined : "Accept the cost first.")
        }
        send={async ({ name }, idempotencyKey) => {
          const body = { name, template_name: template, accepted_monthly_cost: preview?.monthly_total ?? 0 };
          const { id } = await stacks.create(body, { idempotencyKey });
          openPage(hrefOf("stacks", id));
        }}
      >
        <TextField label="Name" {...form.field("name")} autocomplete="off" />
        <ChoiceField
          label="Template"
          name="template"
          value={template}
          onInput={(value) => {
            form.set("template", value);
            form.set("isAccepted", false);
          }}
          choices={templates.data.map(({ name, title, description, unavailable_reason: reason }) => ({
            value: name,
            title,
            detail: description,
            refusal: reason ?? undefined,
          }))}
          fault={form.fault("template_name")}
        />
        <ErrorNotice error={pricing.error} />
        {template !== "" && !isPriced && (
          <div class="row">
            <Button busy={pricing.isBusy} onClick={compute}>
              Compute the cost
            </Button>
          </div>
        )}
        {preview !== undefined && isPriced && (
          <>
            <Costs preview={preview} />
            <CheckField
              label={`I accept ${priceText(preview.monthly_total, preview.currency)} a month`}
              checked={form.values.isAccepted}
              onInput={(isAccepted) => form.set("isAccepted", isAccepted)}
            />
          </>
        )}
      </FormBody>
    </Card>
  );
}

function Costs({ preview }: { readonly preview: StackPreview }) {
  return (
    <div class="stack" data-gap="s">
      {preview.warnings.map((warning) => (
        <Notice key={warning} tone="warn">
          {warning}
        </Notice>
      ))}
      <div class="scroll" tabIndex={0} role="group" aria-label="Costs">
        <Table
          title="Costs"
          entries={preview.line_items}
          keyOf={({ symbolic_name: name, description }) => `${name} ${description}`}
          columns={[
            ["Resource", ({ symbolic_name: name }) => <b>{name}</b>],
            ["For", ({ description }) => description],
            [
              "Cost a month",
              ({ monthly_cost: cost, is_ceiling: isCeiling }) =>
                `${isCeiling ? "at most " : ""}${priceText(cost, preview.currency)}`,
            ],
          ]}
        />
      </div>
      <p class="price">{priceText(preview.monthly_total, preview.currency)} a month</p>
    </div>
  );
}
