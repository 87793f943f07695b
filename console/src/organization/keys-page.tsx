import { useState } from "preact/hooks";
import type { ApiKey, CreatedApiKey } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Card, Copyable, PageHead } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import { ScopesField } from "./scopes-field.tsx";

/** Time for which the former secret of a rotated key is valid. */
const overlapHours = 24;

/** API keys of the organization; the page shows the secret of a new key once. */
export function KeysPage() {
  const [created, setCreated] = useState<CreatedApiKey | undefined>();
  const live = useLive<readonly ApiKey[]>("keys", (signal) => account.value.client.apiKeys.list({ signal }).toArray());
  return (
    <>
      <PageHead title="API keys" about="Credentials of programs" />
      {created && (
        <Notice tone="good">
          <p>The secret of {created.name} is here once. Store it now.</p>
          <Copyable text={`${created.id}:${created.secret}`} label="the key and its secret" />
        </Notice>
      )}
      <LiveTable
        title="API keys"
        live={live}
        keyOf={({ id }) => id}
        icon="key"
        empty="No keys yet"
        columns={[
          ["Name", ({ name }) => <b>{name}</b>],
          ["Id", ({ id }) => <span class="mono small">{id}</span>],
          ["Scopes", ({ scopes }) => <span class="quiet">{scopes.join(", ")}</span>],
          ["Last use", ({ last_used_at: time }) => <Age time={time} />],
          ["Expires", ({ expires_at: time }) => <Age time={time} />],
          [
            "",
            (key) => (
              <span class="row end">
                <ActionButton
                  kind="plain"
                  refusal={refusalOf("keys:write")}
                  run={async () => {
                    setCreated(await account.value.client.apiKeys.rotate(key.id, overlapHours));
                    live.reload();
                  }}
                  done={`The former secret of ${key.name} is valid for ${overlapHours} hours`}
                >
                  Rotate<span class="visually-hidden"> {key.name}</span>
                </ActionButton>
                <Deletion apiKey={key} reload={live.reload} />
              </span>
            ),
          ],
        ]}
      />
      <NewKey
        onCreate={(key) => {
          setCreated(key);
          live.reload();
        }}
      />
    </>
  );
}

function Deletion({ apiKey: { id, name }, reload }: { readonly apiKey: ApiKey; readonly reload: () => void }) {
  return (
    <DestroyButton
      text="Delete"
      refusal={refusalOf("keys:write")}
      title={`Delete ${name}`}
      name={name}
      action="Delete key"
      destroy={() => account.value.client.apiKeys.delete(id).then(reload)}
    >
      <p>Its calls are refused immediately. A deleted key cannot be restored.</p>
    </DestroyButton>
  );
}

function NewKey({ onCreate }: { readonly onCreate: (key: CreatedApiKey) => void }) {
  const form = useForm<{ name: string; scopes: readonly string[] }>({ name: "", scopes: [] });
  return (
    <Card title="Create a key">
      <FormBody
        form={form}
        action="Create key"
        icon="plus"
        refusal={refusalOf("keys:write")}
        send={async (body, idempotencyKey) => {
          onCreate(await account.value.client.apiKeys.create(body, { idempotencyKey }));
          form.set("name", "");
        }}
      >
        <TextField label="Name" {...form.field("name")} autocomplete="off" />
        <ScopesField
          chosen={form.values.scopes}
          onInput={(scopes) => form.set("scopes", scopes)}
          fault={form.fault("scopes")}
        />
      </FormBody>
    </Card>
  );
}
