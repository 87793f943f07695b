import type { Channel, ChannelDelivery } from "@holdfast/sdk/responses.ts";
import { eventTitle } from "../events/event-view.ts";
import { LivePage } from "../live/live-page.tsx";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Facts } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { ChannelState } from "./alerts-page.tsx";
import { deliveryResultOf, targetOf } from "./channel-view.ts";

/** One notification channel with its newest delivery attempts. */
export function ChannelPage({ id }: { readonly id: string }) {
  const { channels } = account.value.client;
  const live = useLive<Channel>(`channel ${id}`, (signal) => channels.get(id, { signal }), { pollIntervalMs: 15_000 });
  const deliveries = useLive<readonly ChannelDelivery[]>(
    `deliveries of channel ${id}`,
    (signal) => channels.deliveries(id, { signal }),
    { pollIntervalMs: 5_000 },
  );
  const refusal = refusalOf("webhooks:write");
  return (
    <LivePage
      live={live}
      kind="channel"
      icon="send"
      crumbs={<a href={hrefOf("alerts")}>Alerts</a>}
      title={({ name }) => name}
      beside={(channel) => <ChannelState channel={channel} />}
      actions={({ type, confirmed_at: confirmedAt }) => {
        const isConfirmation = type === "email" && confirmedAt === null;
        return (
          <ActionButton
            refusal={refusal}
            run={() => channels.test(id).then(deliveries.reload)}
            done={isConfirmation ? "The link is on its way" : "A test is on its way"}
          >
            {isConfirmation ? "Send the link again" : "Send a test"}
          </ActionButton>
        );
      }}
    >
      {(channel) => (
        <>
          {channel.warning !== null && <Notice tone="warn">{channel.warning}</Notice>}
          <Card title="About">
            <Facts
              facts={[
                ["Address", targetOf(channel)],
                ...(channel.type === "email"
                  ? [["Confirmed", <Age key="confirmed" time={channel.confirmed_at} />] as const]
                  : []),
                ["Created", <Age key="created" time={channel.created_at} />],
                ["Changed", <Age key="changed" time={channel.updated_at} />],
              ]}
            />
          </Card>
          <LiveTable
            title="Newest deliveries"
            live={deliveries}
            keyOf={({ id: delivery }) => delivery}
            icon="send"
            empty="No delivery yet"
            columns={[
              ["Time", ({ created_at: time }) => <Age time={time} />],
              ["Event", ({ event_type: type }) => <b>{eventTitle(type)}</b>],
              ["Attempt", ({ attempt }) => attempt],
              ["Result", (delivery) => <Result delivery={delivery} />],
              ["Duration", ({ duration_ms: ms }) => <span class="number">{ms} ms</span>],
            ]}
          >
            <p class="quiet">Send a test to see whether it arrives.</p>
          </LiveTable>
          <Settings channel={channel} reload={live.reload} />
          <DeletionCard
            kind="channel"
            name={channel.name}
            refusal={refusal}
            destroy={async () => {
              await channels.delete(id);
              openPage(hrefOf("alerts"));
            }}
          >
            <p>It is refused while a rule uses the channel, or while it is the default one.</p>
          </DeletionCard>
        </>
      )}
    </LivePage>
  );
}

function Result({ delivery }: { readonly delivery: ChannelDelivery }) {
  const { text, tone } = deliveryResultOf(delivery);
  return (
    <span class="row">
      <Badge tone={tone}>{text}</Badge>
      {delivery.error_message !== null && <span class="small">{delivery.error_message}</span>}
    </span>
  );
}

function Settings({ channel, reload }: { readonly channel: Channel; readonly reload: () => void }) {
  const form = useForm({ name: channel.name, target: targetOf(channel) });
  const field = channel.type === "email" ? "address" : "url";
  return (
    <Card title="Settings">
      <FormBody
        form={form}
        action="Save"
        kind="primary"
        refusal={refusalOf("webhooks:write")}
        send={async (_, __, { name, target }) => {
          const change = {
            ...(name !== undefined && { name }),
            ...(target !== undefined && { config: { [field]: target.trim() } }),
          };
          await account.value.client.channels.update(channel.id, change);
          showToast("good", "Saved");
          reload();
        }}
      >
        <div class="halves">
          <TextField label="Name" {...form.field("name")} autocomplete="off" />
          <TextField
            label={channel.type === "email" ? "Mail address" : "Address of the endpoint"}
            help={channel.type === "email" ? "A new address first gets a link to confirm" : undefined}
            {...form.field("target", `config.${field}`)}
            autocomplete="off"
          />
        </div>
      </FormBody>
    </Card>
  );
}
