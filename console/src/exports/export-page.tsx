import type { MetricsExport } from "@holdfast/sdk/responses.ts";
import { durationText, labelOf, numberText } from "../format.ts";
import { LivePage } from "../live/live-page.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Card, Facts } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { DestinationFields } from "./destination-fields.tsx";
import { destinations, droppedItems, exportChangeOf, exportInputOf } from "./export-view.ts";
import { ExportState } from "./exports-page.tsx";

/** One export: delivered and dropped items, its last error, and a test of its destination. */
export function ExportPage({ id }: { readonly id: string }) {
  const { exports } = account.value.client;
  const live = useLive<MetricsExport>(`export ${id}`, (signal) => exports.get(id, { signal }), {
    pollIntervalMs: 5_000,
  });
  const refusal = refusalOf("exports:write");
  const test = async () => {
    const { success, error } = await exports.test(id);
    if (!success) throw new Error(error ?? "The destination refused the test.");
  };
  return (
    <LivePage
      live={live}
      kind="export"
      icon="send"
      crumbs={<a href={hrefOf("exports")}>Exports</a>}
      title={({ name }) => name}
      beside={(integration) => <ExportState integration={integration} />}
      actions={({ is_enabled: isEnabled }) => (
        <>
          <ActionButton refusal={refusal} run={test} done="The destination accepted the test">
            Test the destination
          </ActionButton>
          <ActionButton
            refusal={refusal}
            run={async () => {
              await (isEnabled ? exports.disable(id) : exports.enable(id));
              live.reload();
            }}
          >
            {isEnabled ? "Disable" : "Enable"}
          </ActionButton>
        </>
      )}
    >
      {(integration) => (
        <>
          {integration.last_export_error !== null && (
            <Notice tone="bad">
              <b>
                {numberText(integration.consecutive_failures)}{" "}
                {integration.consecutive_failures === 1 ? "attempt" : "attempts"} failed in a row.
              </b>
              <p>{integration.last_export_error}</p>
            </Notice>
          )}
          {integration.disabled_reason !== null && <Notice tone="warn">{integration.disabled_reason}</Notice>}
          {integration.warnings.map((warning) => (
            <Notice key={warning} tone="warn">
              {warning}
            </Notice>
          ))}
          <Card title="Delivery">
            <Facts
              facts={[
                ["Samples", numberText(integration.exported.samples)],
                ["Log entries", numberText(integration.exported.log_entries)],
                ["Dropped items", numberText(droppedItems(integration))],
                ["Waiting since", durationText(integration.backlog_seconds)],
                ["Last delivery", <Age key="delivery" time={integration.last_export_at} />],
                ["Last attempt", <Age key="attempt" time={integration.last_attempt_at} />],
              ]}
            />
          </Card>
          <Card title="Destination">
            <Facts
              facts={[
                ["Type", destinations[integration.destination_type].title],
                ["Data", integration.data_type === "both" ? "metrics and logs" : integration.data_type],
                ["Interval", durationText(integration.export_interval_seconds)],
                ["Services", <ServiceLink key="service" id={integration.service_id} />],
                ...Object.entries(integration.configuration).map(
                  ([name, value]) =>
                    [labelOf(name), typeof value === "string" ? value : JSON.stringify(value)] as const,
                ),
              ]}
            />
          </Card>
          <Settings integration={integration} reload={live.reload} />
          <Deletion integration={integration} />
        </>
      )}
    </LivePage>
  );
}

interface SettingsProps {
  readonly integration: MetricsExport;
  readonly reload: () => void;
}

/** Name, interval and the settings of the destination. */
function Settings({ integration, reload }: SettingsProps) {
  const { id, destination_type: type } = integration;
  const form = useForm(exportInputOf(integration));
  return (
    <Card title="Settings">
      <FormBody
        form={form}
        action="Save"
        refusal={refusalOf("exports:write") ?? refusalOf("services:read")}
        send={async (_, __, edited) => {
          await account.value.client.exports.update(id, exportChangeOf(type, edited));
          for (const { name, isSecret } of destinations[type].fields) if (isSecret === true) form.set(name, "");
          showToast("good", "Saved");
          reload();
        }}
      >
        <p class="quiet">Another address or tenant needs the secrets of the destination again.</p>
        <div class="halves">
          <TextField label="Name" {...form.field("name")} autocomplete="off" />
          <TextField label="Interval in seconds" type="number" {...form.field("interval", "export_interval_seconds")} />
          <DestinationFields form={form} fields={destinations[type].fields} isStored />
        </div>
      </FormBody>
    </Card>
  );
}

function ServiceLink({ id }: { readonly id: string | null }) {
  return id === null ? <>all services</> : <a href={hrefOf("services", id)}>{id}</a>;
}

function Deletion({ integration: { id, name } }: { readonly integration: MetricsExport }) {
  return (
    <DeletionCard
      kind="export"
      name={name}
      refusal={refusalOf("exports:write")}
      destroy={async () => {
        await account.value.client.exports.delete(id);
        openPage(hrefOf("exports"));
      }}
    >
      <p>Items that wait for delivery are discarded. Data at the destination stays.</p>
    </DeletionCard>
  );
}
