import { useState } from "preact/hooks";
import type { Delivery, RotatedSecret, Webhook } from "@holdfast/sdk/responses.ts";
import { eventTitle } from "../events/event-view.ts";
import { LivePage } from "../live/live-page.tsx";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { CheckField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Copyable, Facts } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { EventTypesField } from "./event-types-field.tsx";
import { deliveryTone, eventsOf, eventsText, responseText } from "./webhook-view.ts";
import { WebhookState } from "./webhooks-page.tsx";

/** One webhook with its settings and its newest delivery attempts. */
export function WebhookPage({ id }: { readonly id: string }) {
  const { webhooks } = account.value.client;
  const live = useLive<Webhook>(`webhook ${id}`, (signal) => webhooks.get(id, { signal }), { pollIntervalMs: 15_000 });
  const deliveries = useLive<readonly Delivery[]>(`deliveries ${id}`, (signal) => webhooks.deliveries(id, { signal }), {
    pollIntervalMs: 5_000,
  });
  const refusal = refusalOf("webhooks:write");
  return (
    <LivePage
      live={live}
      kind="webhook"
      icon="bolt"
      crumbs={<a href={hrefOf("webhooks")}>Webhooks</a>}
      title={({ url }) => url}
      beside={(webhook) => <WebhookState webhook={webhook} />}
      actions={() => (
        <ActionButton
          refusal={refusal}
          run={() => webhooks.test(id).then(deliveries.reload)}
          done="A test event is on its way"
        >
          Send a test event
        </ActionButton>
      )}
    >
      {(webhook) => (
        <>
          {webhook.warning !== null && <Notice tone="warn">{webhook.warning}</Notice>}
          <Card title="About">
            <Facts
              facts={[
                ["Events", eventsText(webhook.events)],
                ["Retries", webhook.retry_policy],
                ["Created", <Age key="created" time={webhook.created_at} />],
                ["Changed", <Age key="changed" time={webhook.updated_at} />],
              ]}
            />
          </Card>
          <LiveTable
            title="Newest deliveries"
            live={deliveries}
            keyOf={({ id: delivery }) => delivery}
            icon="bolt"
            empty="No delivery yet"
            columns={[
              ["Time", ({ created_at: time }) => <Age time={time} />],
              ["Event", ({ event_type: type }) => <b>{eventTitle(type)}</b>],
              ["Attempt", ({ attempt }) => attempt],
              ["Response", (delivery) => <Response delivery={delivery} />],
              ["Duration", ({ duration_ms: ms }) => <span class="number">{ms} ms</span>],
              [
                "",
                (delivery) => (
                  <ActionButton
                    kind="plain"
                    refusal={refusal}
                    run={() => webhooks.redeliver(id, delivery.id).then(deliveries.reload)}
                    done="The event is delivered again"
                  >
                    Redeliver
                  </ActionButton>
                ),
              ],
            ]}
          >
            <p class="quiet">Send a test event to see whether the address responds.</p>
          </LiveTable>
          <Settings webhook={webhook} reload={live.reload} />
          <Secret id={id} />
          <Deletion webhook={webhook} />
        </>
      )}
    </LivePage>
  );
}

function Response({ delivery }: { readonly delivery: Delivery }) {
  const { response_status: status, error_message: error } = delivery;
  return (
    <span class="row">
      <Badge tone={deliveryTone(delivery)}>
        {status === null && error !== null ? "failed" : responseText(delivery)}
      </Badge>
      {error !== null && <span class="small">{error}</span>}
    </span>
  );
}

function Settings({ webhook, reload }: { readonly webhook: Webhook; readonly reload: () => void }) {
  const form = useForm({ url: webhook.url, events: webhook.events?.join("\n") ?? "", active: webhook.active });
  return (
    <Card title="Settings">
      <FormBody
        form={form}
        action="Save"
        kind="primary"
        refusal={refusalOf("webhooks:write") ?? refusalOf("services:read")}
        send={async (_, __, { events, ...edited }) => {
          const change = { ...edited, ...(events !== undefined && { events: eventsOf(events) }) };
          await account.value.client.webhooks.update(webhook.id, change);
          showToast("good", "Saved");
          reload();
        }}
      >
        <TextField label="Address" {...form.field("url")} autocomplete="off" />
        <EventTypesField {...form.field("events")} />
        <CheckField
          label="Deliver events"
          checked={form.values.active}
          onInput={(active) => form.set("active", active)}
        />
      </FormBody>
    </Card>
  );
}

function Secret({ id }: { readonly id: string }) {
  const [rotated, setRotated] = useState<RotatedSecret | undefined>();
  return (
    <Card title="Signing secret">
      <div class="stack">
        <p class="quiet">After a rotation, requests are signed by both secrets for 24 hours.</p>
        {rotated && (
          <Notice tone="good">
            <p>The new secret is here once. Store it now.</p>
            <Copyable text={rotated.secret} label="the signing secret" />
          </Notice>
        )}
        <div class="row">
          <ActionButton
            refusal={refusalOf("webhooks:write")}
            run={async () => setRotated(await account.value.client.webhooks.rotateSecret(id, 24))}
          >
            Rotate the secret
          </ActionButton>
        </div>
      </div>
    </Card>
  );
}

function Deletion({ webhook: { id, url } }: { readonly webhook: Webhook }) {
  return (
    <DeletionCard
      kind="webhook"
      name={new URL(url).host}
      refusal={refusalOf("webhooks:write")}
      destroy={async () => {
        await account.value.client.webhooks.delete(id);
        openPage(hrefOf("webhooks"));
      }}
    >
      <p>Events are no longer delivered to {url}. A deleted webhook cannot be restored.</p>
    </DeletionCard>
  );
}
