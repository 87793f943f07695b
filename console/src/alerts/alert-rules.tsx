import type { AlertRule } from "@holdfast/sdk/responses.ts";
import { useRef, useState } from "preact/hooks";
import { labelOf, metricText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { type Monitored, metricsOf } from "../monitored.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Button } from "../parts/button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { Age, Badge } from "../parts/parts.tsx";
import { hrefOf } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { conditionText, severityTone, stateOf } from "./alert-view.ts";
import { FiringsTable } from "./firings-table.tsx";
import { NewRule, RuleForm } from "./rule-form.tsx";
import { useChannels } from "./use-channels.ts";

/** Alert rules of a service or an app with their states and past alerts, and forms that create and change a rule. */
export function AlertRules({ owner }: { readonly owner: Monitored }) {
  const catalog = useCatalog();
  const { alerts } = account.value.client;
  const [changed, setChanged] = useState<string>();
  /** The button that opened the form of a rule, which has the focus again afterwards. */
  const opener = useRef<Element | null>(null);
  const live = useLive<readonly AlertRule[]>(
    `rules ${owner.id}`,
    (signal) => alerts.rules(owner.id, { signal, limit: 200 }).toArray(),
    { service: owner.id, pollIntervalMs: 5_000 },
  );
  const { channels, channelText } = useChannels();
  const metrics = metricsOf(catalog, owner.software);
  const unitOf = (name: string) => metrics.find((metric) => metric.name === name)?.unit ?? "count";
  const rule = live.data?.find(({ id }) => id === changed);
  const refusal = refusalOf("services:write");
  const form = { owner, metrics, channels, reload: live.reload };
  return (
    <>
      <LiveTable
        title="Alert rules"
        live={live}
        keyOf={({ id }) => id}
        icon="alarm"
        empty="No rules"
        columns={[
          [
            "Name",
            (each) => (
              <>
                <a class="strong" href={hrefOf("alerts", "rules", owner.id, each.id)}>
                  {each.name}
                </a>
                <p class="small quiet">
                  {labelOf(each.metric)} {conditionText(each, unitOf(each.metric))}
                </p>
              </>
            ),
          ],
          ["State", (each) => <RuleState rule={each} />],
          ["Newest value", ({ value, metric }) => (value === null ? "" : metricText(value, unitOf(metric)))],
          ["Severity", ({ severity }) => <Badge tone={severityTone(severity)}>{severity}</Badge>],
          ["Notifies", ({ notification_channel_id: id }) => <span class="quiet">{channelText(id)}</span>],
          [
            "",
            (each) => (
              <span class="row end">
                <Button
                  kind="plain"
                  refusal={refusal}
                  onClick={() => {
                    opener.current = document.activeElement;
                    setChanged(each.id);
                  }}
                >
                  Change<span class="visually-hidden"> {each.name}</span>
                </Button>
                <ActionButton
                  kind="plain"
                  refusal={refusal}
                  run={() => alerts.updateRule(owner.id, each.id, { paused: !each.paused }).then(live.reload)}
                >
                  {each.paused ? "Resume" : "Mute"}
                  <span class="visually-hidden"> {each.name}</span>
                </ActionButton>
                <DestroyButton
                  text="Delete"
                  refusal={refusal}
                  title={`Delete ${each.name}`}
                  name={each.name}
                  action="Delete rule"
                  destroy={() => alerts.deleteRule(owner.id, each.id).then(live.reload)}
                >
                  <p>Its alert ends, and nobody is notified of the condition any more. Mute a rule to keep it.</p>
                </DestroyButton>
              </span>
            ),
          ],
        ]}
      >
        <p class="quiet">Add a rule below: it fires when a metric is above or below a value for some time.</p>
      </LiveTable>
      {rule === undefined ? (
        <NewRule {...form} />
      ) : (
        <RuleForm
          key={rule.id}
          {...form}
          rule={rule}
          close={() => {
            setChanged(undefined);
            if (opener.current instanceof HTMLElement) opener.current.focus();
          }}
        />
      )}
      <FiringsTable ownerId={owner.id} unitOf={unitOf} />
    </>
  );
}

/** The state of a rule, and since when its condition is true. */
export function RuleState({ rule: { state, since } }: { readonly rule: AlertRule }) {
  const { text, tone } = stateOf(state);
  return (
    <span class="row">
      <Badge tone={tone}>{text}</Badge>
      {since !== null && <Age time={since} />}
    </span>
  );
}
