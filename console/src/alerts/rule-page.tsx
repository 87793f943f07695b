import type { AlertRule } from "@holdfast/sdk/responses.ts";
import { labelOf, metricText } from "../format.ts";
import { LivePage } from "../live/live-page.tsx";
import { useLive } from "../live/use-live.ts";
import { useOwnerPaths } from "../owners/use-owner-paths.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { Age, Badge, Card, Facts } from "../parts/parts.tsx";
import { hrefOf, openPage } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { RuleState } from "./alert-rules.tsx";
import { conditionText, noDataEffects, severityTone } from "./alert-view.ts";
import { FiringsTable } from "./firings-table.tsx";
import { RuleForm } from "./rule-form.tsx";
import { useChannels } from "./use-channels.ts";

interface RulePageProps {
  /** Id of the service or the app whose metric the rule evaluates. */
  readonly ownerId: string;
  readonly ruleId: string;
}

/** One alert rule: its state, a form that changes it, its alerts, and its deletion. */
export function RulePage({ ownerId, ruleId }: RulePageProps) {
  const catalog = useCatalog();
  const { alerts } = account.value.client;
  const rulesPath = hrefOf(...useOwnerPaths()(ownerId), "alerts");
  const live = useLive<AlertRule>(`rule ${ruleId}`, (signal) => alerts.getRule(ownerId, ruleId, { signal }), {
    service: ownerId,
    pollIntervalMs: 5_000,
  });
  const { channels, channelText } = useChannels();
  const metrics = catalog?.metrics ?? [];
  const unitOf = (name: string) => metrics.find((metric) => metric.name === name)?.unit ?? "count";
  const refusal = refusalOf("services:write");
  return (
    <LivePage
      live={live}
      kind="alert rule"
      icon="alarm"
      crumbs={
        <>
          <a href={hrefOf("alerts")}>Alerts</a> / <a href={rulesPath}>Rules</a>
        </>
      }
      title={({ name }) => name}
      beside={(rule) => <RuleState rule={rule} />}
      actions={({ paused }) => (
        <ActionButton
          refusal={refusal}
          run={() => alerts.updateRule(ownerId, ruleId, { paused: !paused }).then(live.reload)}
        >
          {paused ? "Resume" : "Mute"}
        </ActionButton>
      )}
    >
      {(rule) => (
        <>
          <Card title="About">
            <Facts
              facts={[
                ["Fires when", `${labelOf(rule.metric)} is ${conditionText(rule, unitOf(rule.metric))}`],
                ["Newest value", rule.value === null ? "none" : metricText(rule.value, unitOf(rule.metric))],
                [
                  "Severity",
                  <Badge key="severity" tone={severityTone(rule.severity)}>
                    {rule.severity}
                  </Badge>,
                ],
                ["Notifies", channelText(rule.notification_channel_id)],
                ["Without samples", noDataEffects.find(([effect]) => effect === rule.no_data)?.[1] ?? rule.no_data],
                [
                  "Node",
                  rule.node_id === null ? (
                    "none"
                  ) : (
                    <span key="node" class="mono small">
                      {rule.node_id}
                    </span>
                  ),
                ],
                ["Created", <Age key="created" time={rule.created_at} />],
                ["Changed", <Age key="changed" time={rule.updated_at} />],
              ]}
            />
          </Card>
          <RuleForm
            key={rule.updated_at}
            owner={{ id: ownerId }}
            rule={rule}
            metrics={metrics}
            channels={channels}
            reload={live.reload}
          />
          <FiringsTable ownerId={ownerId} ruleId={ruleId} unitOf={unitOf} />
          <DeletionCard
            kind="rule"
            name={rule.name}
            refusal={refusal}
            destroy={async () => {
              await alerts.deleteRule(ownerId, ruleId);
              openPage(rulesPath);
            }}
          >
            <p>Its alert ends, and nobody is notified of the condition any more. Mute a rule to keep it.</p>
          </DeletionCard>
        </>
      )}
    </LivePage>
  );
}
