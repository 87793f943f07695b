import { useState } from "preact/hooks";
import type { AuthClient } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Badge, Card, Copyable } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import type { AppProps } from "./app-props.ts";
import { linesOf } from "./app-view.ts";

/** OpenID Connect clients of the app; the page shows the secret of a confidential client once. */
export function ClientsTab({ app: { id } }: AppProps) {
  const { auth } = account.value.client;
  const [created, setCreated] = useState<AuthClient | undefined>();
  const live = useLive<readonly AuthClient[]>(
    `clients ${id}`,
    async (signal) => (await auth.clients(id, { signal })).clients,
  );
  const refusal = refusalOf("apps:write");
  return (
    <>
      {created !== undefined && created.client_secret !== null && (
        <Notice tone="good">
          <p>The secret of {created.name} is here once. Store it now.</p>
          <Copyable text={created.client_secret} label="the client secret" />
        </Notice>
      )}
      <LiveTable
        title="Clients"
        live={live}
        keyOf={({ client_id: client }) => client}
        icon="key"
        empty="No clients yet"
        columns={[
          ["Name", ({ name }) => <b>{name}</b>],
          ["Type", ({ type }) => <Badge tone="none">{type}</Badge>],
          ["Client id", ({ client_id: client }) => <span class="mono small">{client}</span>],
          ["Sign-ins return to", ({ redirect_uris: uris }) => <span class="quiet">{uris.join(", ")}</span>],
          [
            "",
            (client) => (
              <span class="row end">
                {client.type === "confidential" && (
                  <ActionButton
                    kind="plain"
                    refusal={refusal}
                    run={async () => setCreated(await auth.rotateClientSecret(id, client.client_id))}
                  >
                    Rotate the secret
                  </ActionButton>
                )}
                {client.client_id !== id && (
                  <DestroyButton
                    text="Delete"
                    refusal={refusal}
                    title={`Delete ${client.name}`}
                    name={client.name}
                    action="Delete client"
                    destroy={() => auth.deleteClient(id, client.client_id).then(live.reload)}
                  >
                    <p>Sign-ins by this client fail immediately. A deleted client cannot be restored.</p>
                  </DestroyButton>
                )}
              </span>
            ),
          ],
        ]}
      >
        <p class="quiet">The client of the app itself appears here once the sign-in is enabled.</p>
      </LiveTable>
      <NewClient
        appId={id}
        onCreate={(client) => {
          setCreated(client);
          live.reload();
        }}
      />
    </>
  );
}

interface NewClientProps {
  readonly appId: string;
  readonly onCreate: (client: AuthClient) => void;
}

function NewClient({ appId, onCreate }: NewClientProps) {
  const form = useForm({ name: "", type: "public", redirects: "", origins: "" });
  return (
    <Card title="Add a client">
      <FormBody
        form={form}
        action="Add client"
        icon="plus"
        refusal={refusalOf("apps:write")}
        send={async ({ name, type, redirects, origins }, idempotencyKey) => {
          const body = {
            name,
            type: type === "confidential" ? ("confidential" as const) : ("public" as const),
            redirect_uris: linesOf(redirects),
            allowed_origins: linesOf(origins),
          };
          onCreate(await account.value.client.auth.createClient(appId, body, { idempotencyKey }));
          form.set("name", "");
        }}
      >
        <div class="halves">
          <TextField label="Name" {...form.field("name")} autocomplete="off" />
          <SelectField
            label="Type"
            {...form.field("type")}
            options={[
              ["public", "Public: a page or an app on a phone"],
              ["confidential", "Confidential: a server with a secret"],
            ]}
          />
          <TextField
            label="Addresses to which sign-ins return"
            help="One per line"
            lines
            {...form.field("redirects", "redirect_uris")}
          />
          <TextField
            label="Origins of scripts"
            help="One per line, such as https://shop.example.com"
            lines
            {...form.field("origins", "allowed_origins")}
          />
        </div>
      </FormBody>
    </Card>
  );
}
