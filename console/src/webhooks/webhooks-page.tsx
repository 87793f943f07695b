import { useState } from "preact/hooks";
import type { CreatedWebhook, Webhook } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Copyable, PageHead } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { EventTypesField } from "./event-types-field.tsx";
import { eventsOf, eventsText } from "./webhook-view.ts";

/** Webhooks of the organization; the page shows the signing secret of a new one once. */
export function WebhooksPage() {
  const live = useLive<readonly Webhook[]>("webhooks", (signal) =>
    account.value.client.webhooks.list({ signal }).toArray(),
  );
  return (
    <>
      <PageHead title="Webhooks" about="Addresses that receive the organization's events as signed requests" />
      <LiveTable
        title="Webhooks"
        live={live}
        keyOf={({ id }) => id}
        icon="bolt"
        empty="No webhooks yet"
        columns={[
          [
            "Address",
            ({ id, url }) => (
              <a class="strong" href={hrefOf("webhooks", id)}>
                {url}
              </a>
            ),
          ],
          ["State", (webhook) => <WebhookState webhook={webhook} />],
          ["Events", ({ events }) => <span class="quiet">{eventsText(events)}</span>],
          ["Created", ({ created_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">Add the address of a program below. It gets a request for each event, such as a failover.</p>
      </LiveTable>
      <NewWebhook reload={live.reload} />
    </>
  );
}

export function WebhookState({ webhook: { active, disabled_at: time } }: { readonly webhook: Webhook }) {
  if (time !== null)
    return (
      <span class="row">
        <Badge tone="bad">disabled</Badge>
        <Age time={time} />
      </span>
    );
  return <Badge tone={active ? "good" : "none"}>{active ? "active" : "paused"}</Badge>;
}

function NewWebhook({ reload }: { readonly reload: () => void }) {
  const [created, setCreated] = useState<CreatedWebhook | undefined>();
  const form = useForm({ url: "", events: "" });
  return (
    <Card title="Add a webhook">
      <FormBody
        form={form}
        action="Add webhook"
        icon="plus"
        refusal={refusalOf("webhooks:write") ?? refusalOf("services:read")}
        send={async ({ url, events }, idempotencyKey) => {
          const body = { url, events: eventsOf(events) };
          setCreated(await account.value.client.webhooks.create(body, { idempotencyKey }));
          form.set("url", "");
          reload();
        }}
      >
        <TextField
          label="Address"
          help="The request is a POST, signed by the secret of the webhook"
          {...form.field("url")}
          autocomplete="off"
        />
        <EventTypesField {...form.field("events")} />
        {created && (
          <Notice tone="good">
            <p>The signing secret of {created.url} is here once. Store it now.</p>
            <Copyable text={created.secret} label="the signing secret" />
          </Notice>
        )}
      </FormBody>
    </Card>
  );
}
