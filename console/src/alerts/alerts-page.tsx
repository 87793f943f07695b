import type { Channel, ChannelType, FiringAlert } from "@holdfast/sdk/responses.ts";
import { useState } from "preact/hooks";
import { labelOf, metricText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { useOwnerPaths } from "../owners/use-owner-paths.ts";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Copyable, PageHead } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { severityTone, stateOf } from "./alert-view.ts";
import { channelStateOf, channelTypes, targetOf } from "./channel-view.ts";
import { useChannels } from "./use-channels.ts";

const maxAlerts = 200;

/** Firing alerts of the organization, and the channels that are notified of them. */
export function AlertsPage() {
  const catalog = useCatalog();
  const pathOf = useOwnerPaths();
  const live = useLive<readonly FiringAlert[]>(
    "firing alerts",
    async (signal) => {
      for await (const { entries } of account.value.client.alerts.firing({ signal, limit: maxAlerts }).pages())
        return entries;
      return [];
    },
    { pollIntervalMs: 5_000 },
  );
  const unitOf = (metric: string) => catalog?.metrics.find(({ name }) => name === metric)?.unit ?? "count";
  const channels = useChannels();
  return (
    <>
      <PageHead title="Alerts" about="What fires now, and the addresses that are notified" />
      <LiveTable
        title="Firing now"
        live={live}
        keyOf={({ id }) => id}
        icon="alarm"
        empty="Nothing is firing"
        columns={[
          [
            "Alert",
            ({ alert_name: name, service_id: owner, rule_id: rule }) => (
              <a class="strong" href={hrefOf("alerts", "rules", owner, rule)}>
                {name}
              </a>
            ),
          ],
          ["Severity", ({ severity }) => <Badge tone={severityTone(severity)}>{severity}</Badge>],
          [
            "Of",
            ({ service_id: id, service_name: name }) => (
              <a class="strong" href={hrefOf(...pathOf(id), "alerts")}>
                {name}
              </a>
            ),
          ],
          ["State", ({ state }) => <Badge tone={stateOf(state).tone}>{stateOf(state).text}</Badge>],
          [
            "Value",
            ({ current_value: value, metric }) =>
              value === null ? labelOf(metric) : `${labelOf(metric)} ${metricText(value, unitOf(metric))}`,
          ],
          ["Fired", ({ fired_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">The rules of a service are on its page, below Alerts.</p>
      </LiveTable>
      <LiveTable
        title="Channels"
        live={channels.live}
        keyOf={({ id }) => id}
        icon="send"
        empty="No channels yet"
        columns={[
          [
            "Name",
            ({ id, name }) => (
              <a class="strong" href={hrefOf("alerts", "channels", id)}>
                {name}
              </a>
            ),
          ],
          ["State", (channel) => <ChannelState channel={channel} />],
          ["Address", (channel) => <span class="quiet">{targetOf(channel)}</span>],
          [
            "Gets alerts of",
            ({ id }) => (id === channels.defaultChannel ? "rules that name it or none" : "rules that name it"),
          ],
          ["Created", ({ created_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">Add one below. Without a channel, alerts are events: only webhooks and this page show them.</p>
      </LiveTable>
      {channels.channels.length > 0 && (
        <DefaultChannel key={channels.defaultChannel} {...channels} current={channels.defaultChannel ?? ""} />
      )}
      <NewChannel reload={channels.reload} />
    </>
  );
}

export function ChannelState({ channel }: { readonly channel: Channel }) {
  const { text, tone } = channelStateOf(channel);
  return <Badge tone={tone}>{text}</Badge>;
}

interface DefaultProps {
  readonly channels: readonly Channel[];
  readonly current: string;
  readonly reload: () => void;
}

function DefaultChannel({ channels, current, reload }: DefaultProps) {
  const form = useForm({ channel: current });
  return (
    <Card title="Default channel">
      <FormBody
        form={form}
        action="Save"
        refusal={refusalOf("webhooks:write")}
        send={async ({ channel }) => {
          await account.value.client.alerts.setDefaultChannel(channel === "" ? null : channel);
          showToast("good", "Saved");
          reload();
        }}
      >
        <SelectField
          label="Channel of rules without one"
          help="Each new service has rules without a channel, such as for a full disk"
          {...form.field("channel", "channel_id")}
          options={[["", "None: they only emit events"], ...channels.map(({ id, name }) => [id, name] as const)]}
        />
      </FormBody>
    </Card>
  );
}

function NewChannel({ reload }: { readonly reload: () => void }) {
  const [created, setCreated] = useState<Channel | undefined>();
  const form = useForm<{ name: string; type: ChannelType; target: string }>({ name: "", type: "email", target: "" });
  const { type } = form.values;
  const field = type === "email" ? "address" : "url";
  return (
    <Card title="Add a channel">
      <FormBody
        form={form}
        action="Add channel"
        icon="plus"
        refusal={refusalOf("webhooks:write")}
        send={async ({ name, target }, idempotencyKey) => {
          const body = { name, type, config: { [field]: target.trim() } };
          setCreated(await account.value.client.channels.create(body, { idempotencyKey }));
          form.set("name", "");
          form.set("target", "");
          reload();
        }}
      >
        <div class="halves">
          <TextField label="Name" help="Such as on-call" {...form.field("name")} autocomplete="off" />
          <SelectField
            label="Type"
            value={type}
            onInput={(value) => form.set("type", value === "webhook" ? "webhook" : "email")}
            options={channelTypes}
            fault={form.fault("type")}
          />
          <TextField
            label={type === "email" ? "Mail address" : "Address of the endpoint"}
            help={
              type === "email"
                ? "It first gets a link, and alerts once the link is opened"
                : "It gets each alert as a signed POST"
            }
            {...form.field("target", `config.${field}`)}
            autocomplete="off"
          />
        </div>
        {created?.type === "email" && (
          <Notice tone="good">{targetOf(created)} has a mail with a link to confirm.</Notice>
        )}
        {created?.config.secret != null && (
          <Notice tone="good">
            <p>The signing secret of {created.name} is here once. Store it now.</p>
            <Copyable text={created.config.secret} label="the signing secret" />
          </Notice>
        )}
      </FormBody>
    </Card>
  );
}
