import { metricText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Age, Badge } from "../parts/parts.tsx";
import { account } from "../session/account.ts";
import { endOf, type Firing, firingsOf, severityTone } from "./alert-view.ts";

const maxEvents = 100;

interface FiringsProps {
  readonly ownerId: string;
  /** The only rule whose alerts are listed; absent for all rules. */
  readonly ruleId?: string;
  /** The unit of a metric. */
  readonly unitOf: (metric: string) => string;
}

/** The newest alerts of a service or an app, or of one rule, with their ends. */
export function FiringsTable({ ownerId, ruleId, unitOf }: FiringsProps) {
  const live = useLive<readonly Firing[]>(
    `firings ${ownerId} ${ruleId ?? ""}`,
    async (signal) => {
      const { events } = account.value.client;
      const newest = async <T extends "alert.fired" | "alert.resolved">(type: T) => {
        const list = events.listOfService(ownerId, { type, newest: true }, { limit: maxEvents, signal });
        for await (const { entries } of list.pages()) return entries;
        return [];
      };
      const [fired, resolved] = await Promise.all([newest("alert.fired"), newest("alert.resolved")]);
      return firingsOf([...fired, ...resolved].filter(({ data }) => ruleId === undefined || data.rule_id === ruleId));
    },
    { service: ownerId },
  );
  return (
    <LiveTable
      title="Past alerts"
      live={live}
      keyOf={({ id }) => id}
      icon="alarm"
      empty="Nothing has fired"
      columns={[
        ["Fired", ({ firedAt }) => <Age time={firedAt} />],
        ["Alert", ({ name }) => <b>{name}</b>],
        ["Severity", ({ severity }) => <Badge tone={severityTone(severity)}>{severity}</Badge>],
        ["Value", ({ value, metric }) => (value === null ? "no data" : metricText(value, unitOf(metric)))],
        ["Lasted", (firing) => <span class={firing.end && "quiet"}>{endOf(firing)}</span>],
      ]}
    >
      <p class="quiet">Alerts of the last 90 days are listed here, with the value that fired them.</p>
    </LiveTable>
  );
}
