import type { AlertRule, Catalog, Channel, Metrics } from "@holdfast/sdk/responses.ts";
import { useEffect, useRef } from "preact/hooks";
import { Chart } from "../charts/chart.tsx";
import { rangeOfPeriod, thresholdsOf } from "../charts/chart-overlay.ts";
import { labelOf } from "../format.ts";
import { useLive } from "../live/use-live.ts";
import type { Monitored } from "../monitored.ts";
import { Button } from "../parts/button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Card } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { type Form, useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import {
  conditions,
  newRuleOf,
  noDataEffects,
  type RuleInput,
  ruleChangeOf,
  ruleInputOf,
  severities,
  thresholdOf,
} from "./alert-view.ts";

interface FormProps {
  readonly owner: Pick<Monitored, "id">;
  readonly metrics: Catalog["metrics"];
  readonly channels: readonly Channel[];
  readonly reload: () => void;
}

/** The form for a new rule, above a chart of its metric with its threshold. */
export function NewRule({ owner, reload, ...choices }: FormProps) {
  const form = useForm<RuleInput>(ruleInputOf(undefined, ""));
  const metric = form.values.metric || (choices.metrics[0]?.name ?? "");
  return (
    <>
      <Card title="Add a rule">
        <FormBody
          form={form}
          action="Add rule"
          icon="plus"
          refusal={refusalOf("services:write")}
          send={async (input, idempotencyKey) => {
            const body = newRuleOf({ ...input, metric });
            await account.value.client.alerts.createRule(owner.id, body, { idempotencyKey });
            form.set("name", "");
            form.set("threshold", "");
            reload();
          }}
        >
          <div class="halves">
            <TextField
              label="Name"
              help="Empty for a name by its condition"
              {...form.field("name")}
              autocomplete="off"
            />
            <SelectField
              label="Metric"
              value={metric}
              onInput={(value) => form.set("metric", value)}
              options={choices.metrics.map(({ name }) => [name, labelOf(name)] as const)}
              help={choices.metrics.find(({ name }) => name === metric)?.meaning}
              fault={form.fault("metric")}
            />
            <Condition form={form} metric={metric} {...choices} />
          </div>
        </FormBody>
      </Card>
      <Preview owner={owner} input={{ ...form.values, metric }} metrics={choices.metrics} />
    </>
  );
}

interface RuleFormProps extends FormProps {
  readonly rule: AlertRule;
  /** Closes a form that was opened beside the rules; absent on the page of the rule. */
  readonly close?: () => void;
}

/** The form that changes a rule; its metric is fixed. */
export function RuleForm({ owner, rule, reload, close, ...choices }: RuleFormProps) {
  const form = useForm<RuleInput>(ruleInputOf(rule, rule.metric));
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (close !== undefined) host.current?.querySelector("input")?.focus();
  }, []);
  return (
    <>
      <Card title={`Change ${rule.name}`} actions={close && <Button onClick={close}>Cancel</Button>}>
        <FormBody
          form={form}
          action="Save"
          kind="primary"
          refusal={refusalOf("services:write")}
          send={async (input) => {
            await account.value.client.alerts.updateRule(owner.id, rule.id, ruleChangeOf(input, rule));
            showToast("good", "Saved");
            reload();
            close?.();
          }}
        >
          <div class="halves" ref={host}>
            <TextField label="Name" {...form.field("name")} autocomplete="off" />
            <Condition form={form} metric={rule.metric} {...choices} />
          </div>
          <p class="quiet small">Another condition ends a firing alert and evaluates the rule from now on.</p>
        </FormBody>
      </Card>
      <Preview owner={owner} input={form.values} metrics={choices.metrics} />
    </>
  );
}

interface ConditionProps extends Pick<FormProps, "metrics" | "channels"> {
  readonly form: Form<RuleInput>;
  readonly metric: string;
}

function Condition({ form, metric, metrics, channels }: ConditionProps) {
  const unit = metrics.find(({ name }) => name === metric)?.unit ?? "count";
  return (
    <>
      <SelectField label={`Fires when ${labelOf(metric)}`} {...choice(form, "condition", conditions)} />
      <TextField label={`Threshold (${unit})`} type="number" {...form.field("threshold")} autocomplete="off" />
      <TextField
        label="For minutes"
        help="Time for which each sample must meet the condition; 0 for the first one"
        type="number"
        min={0}
        max={1_440}
        {...form.field("minutes", "duration_minutes")}
      />
      <SelectField label="Severity" {...choice(form, "severity", severities)} />
      <SelectField
        label="Channel"
        {...form.field("channel", "notification_channel_id")}
        options={[["", "The default channel"], ...channels.map(({ id, name }) => [id, name] as const)]}
      />
      <SelectField label="Without samples" {...choice(form, "noData", noDataEffects, "no_data")} />
    </>
  );
}

/** Properties of a field with a few values. */
function choice<K extends "condition" | "severity" | "noData">(
  form: Form<RuleInput>,
  name: K,
  options: readonly (readonly [RuleInput[K], string])[],
  of: string = name,
) {
  return {
    value: form.values[name],
    options,
    fault: form.fault(of),
    onInput: (text: string) => {
      const [value] = options.find(([each]) => each === text) ?? [];
      if (value !== undefined) form.set(name, value);
    },
  };
}

const period = "6h";

interface PreviewProps {
  readonly owner: Pick<Monitored, "id">;
  readonly input: RuleInput;
  readonly metrics: Catalog["metrics"];
}

/** The metric of the rule in the last hours, with the line of the threshold in the form. */
function Preview({ owner, input, metrics }: PreviewProps) {
  const { metric } = input;
  const { data } = useLive<Metrics | undefined>(
    `rule metric ${owner.id} ${metric}`,
    async (signal) =>
      metric === "" ? undefined : account.value.client.metrics.get(owner.id, { metric: [metric], period }, { signal }),
    { service: owner.id, pollIntervalMs: 15_000 },
  );
  if (data === undefined) return null;
  const unit = metrics.find(({ name }) => name === metric)?.unit ?? "count";
  const threshold = thresholdOf(input);
  const title = `${labelOf(metric)}, last 6 hours`;
  const thresholds = threshold === undefined ? [] : thresholdsOf([threshold], metric, unit);
  return (
    <Chart
      title={title}
      metric={metric}
      metrics={data}
      range={rangeOfPeriod(period, Date.now())}
      thresholds={thresholds}
    />
  );
}
