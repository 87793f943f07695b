import { NotFound } from "@holdfast/sdk/errors.ts";
import type { InferenceSettings, InferenceUsage } from "@holdfast/sdk/responses.ts";
import { numberText } from "../format.ts";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { CheckField, SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Empty, ErrorNotice, Notice } from "../parts/notice.tsx";
import { Card, Facts, Loading, PageHead, Progress } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { chooseQuery, currentAddress } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { InferenceKeys } from "./inference-keys.tsx";
import { centsText, spentPercent } from "./inference-view.ts";
import { Providers } from "./providers.tsx";

/** Budget, providers, keys and usage of language models. */
export function InferencePage() {
  const { client, me } = account.value;
  const organization = me.organization_id ?? "";
  const currency = useCatalog()?.currency ?? "USD";
  const live = useLive<InferenceSettings>(
    `inference ${organization}`,
    (signal) => client.inference.settings(organization, { signal }),
    { pollIntervalMs: 15_000 },
  );
  const { data, error, reload } = live;
  const isUnset = error instanceof NotFound;
  const refusal = refusalOf("inference:manage");
  return (
    <>
      <PageHead title="Inference" about="Language models of several providers behind one endpoint, with a budget" />
      {refusal === undefined ? (
        <>
          {isUnset ? (
            <Notice>Set a budget, then a provider and a key: an application calls models with the key.</Notice>
          ) : data === undefined ? (
            error === undefined ? (
              <Loading />
            ) : (
              <ErrorNotice error={error} onRetry={reload} />
            )
          ) : (
            <Budget settings={data} currency={currency} organization={organization} reload={reload} />
          )}
          {(isUnset || data !== undefined) && (
            <Limits
              key={`${data?.monthly_cost_limit_cents} ${data?.alert_pct} ${data?.eu_only}`}
              settings={data}
              organization={organization}
              reload={reload}
            />
          )}
          <Providers organization={organization} />
          <InferenceKeys organization={organization} />
          <Usage organization={organization} />
        </>
      ) : (
        <Notice tone="warn">{refusal}</Notice>
      )}
    </>
  );
}

interface BudgetProps {
  readonly settings: InferenceSettings;
  readonly currency: string;
  readonly organization: string;
  readonly reload: () => void;
}

function Budget({ settings, currency, organization, reload }: BudgetProps) {
  const { circuit, monthly_cost_limit_cents: limit, alert_pct: alert } = settings;
  const percent = spentPercent(settings);
  const reset = () => account.value.client.inference.putSettings(organization, { reset_circuit: true }).then(reload);
  return (
    <Card title="This month, in UTC">
      <div class="stack">
        {circuit.open && (
          <Notice tone="bad">
            <b>The budget is spent, and calls are refused.</b>
            <p>Raise the limit, then allow calls again.</p>
            <ActionButton run={reset}>Allow calls</ActionButton>
          </Notice>
        )}
        <div class="row">
          <span class="price">{centsText(circuit.spent_cents, currency)}</span>
          <span class="quiet">of {centsText(limit, currency)}</span>
        </div>
        <Progress percent={percent} label="Part of the budget" />
        <Facts
          facts={[
            ["Reserved for calls in progress", centsText(circuit.reserved_cents, currency)],
            ["Not accounted yet", centsText(circuit.unaccounted_cents, currency)],
            ["Alert at", `${alert}%`],
            ["Models", settings.eu_only ? "only in the EU" : "everywhere"],
          ]}
        />
      </div>
    </Card>
  );
}

interface LimitsProps {
  readonly settings: InferenceSettings | undefined;
  readonly organization: string;
  readonly reload: () => void;
}

function Limits({ settings, organization, reload }: LimitsProps) {
  const form = useForm({
    limit: String((settings?.monthly_cost_limit_cents ?? 5_000) / 100),
    alert: String(settings?.alert_pct ?? 80),
    isEuOnly: settings?.eu_only ?? false,
  });
  return (
    <Card title="Limits">
      <FormBody
        form={form}
        action="Save"
        kind={settings === undefined ? "primary" : "normal"}
        refusal={refusalOf("inference:manage")}
        send={async (values, _, edited) => {
          const { limit, alert, isEuOnly } = settings === undefined ? values : edited;
          await account.value.client.inference.putSettings(organization, {
            ...(limit !== undefined && { monthly_cost_limit_cents: Math.round(Number(limit) * 100) }),
            ...(alert !== undefined && { alert_pct: Number(alert) }),
            ...(isEuOnly !== undefined && { eu_only: isEuOnly }),
          });
          showToast("good", "Saved");
          reload();
        }}
      >
        <div class="halves">
          <TextField
            label="Budget of a month"
            type="number"
            min={0}
            {...form.field("limit", "monthly_cost_limit_cents")}
          />
          <TextField
            label="Alert at percent of the budget"
            type="number"
            min={1}
            max={100}
            {...form.field("alert", "alert_pct")}
          />
        </div>
        <CheckField
          label="Refuse models outside of the EU"
          checked={form.values.isEuOnly}
          onInput={(isEuOnly) => form.set("isEuOnly", isEuOnly)}
        />
      </FormBody>
    </Card>
  );
}

/** The usage of the month by model or by key. */
export function Usage({ organization }: { readonly organization: string }) {
  const groupBy = currentAddress.value.query.get("group") === "key" ? "key" : "model";
  const { data, error, reload } = useLive<InferenceUsage>(
    `usage ${organization} ${groupBy}`,
    (signal) => account.value.client.inference.usage(organization, { group_by: groupBy }, { signal }),
    { pollIntervalMs: 15_000 },
  );
  return (
    <>
      <SelectField
        label="Usage of this month by"
        value={groupBy}
        options={[
          ["model", "Model"],
          ["key", "Key"],
        ]}
        onInput={(value) => chooseQuery({ group: value })}
      />
      <Card title="Usage" flush>
        {data === undefined ? (
          <div class="body">{error === undefined ? <Loading /> : <ErrorNotice error={error} onRetry={reload} />}</div>
        ) : data.items.length === 0 ? (
          <Empty icon="spark" title="No calls this month" />
        ) : (
          <Table
            title="Usage"
            entries={data.items}
            keyOf={({ model, key_id: key }) => `${model} ${key}`}
            columns={[
              [groupBy === "key" ? "Key" : "Model", ({ model, name, key_id: key }) => <b>{model ?? name ?? key}</b>],
              ["Requests", ({ requests }) => <span class="number">{numberText(requests)}</span>],
              ["Tokens in", ({ prompt_tokens: tokens }) => <span class="number">{numberText(tokens)}</span>],
              ["Tokens out", ({ completion_tokens: tokens }) => <span class="number">{numberText(tokens)}</span>],
              ["Cost", ({ cost_cents: cents }) => <span class="number">{centsText(cents, data.currency)}</span>],
            ]}
          />
        )}
      </Card>
    </>
  );
}
