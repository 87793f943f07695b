import { useState } from "preact/hooks";
import type { ApiKey, CreatedApiKey } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { CheckField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Card, Copyable, PageHead } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";

/** API keys of the organization; the page shows the secret of a new key once. */
export function KeysPage() {
  const live = useLive<readonly ApiKey[]>("keys", (signal) => account.value.client.apiKeys.list({ signal }).toArray());
  return (
    <>
      <PageHead title="API keys" about="Credentials of programs" />
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
          ["", (key) => <Deletion apiKey={key} reload={live.reload} />],
        ]}
      />
      <NewKey reload={live.reload} />
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

function NewKey({ reload }: { readonly reload: () => void }) {
  const [created, setCreated] = useState<CreatedApiKey | undefined>();
  const scopes = account.value.me.scopes.filter((scope) => !scope.startsWith("platform:"));
  const form = useForm<{ name: string; scopes: readonly string[] }>({ name: "", scopes: [] });
  const toggle = (scope: string, isOn: boolean) =>
    form.set("scopes", isOn ? [...form.values.scopes, scope] : form.values.scopes.filter((each) => each !== scope));
  return (
    <Card title="Create a key">
      <FormBody
        form={form}
        action="Create key"
        icon="plus"
        refusal={refusalOf("keys:write")}
        send={async (body, idempotencyKey) => {
          setCreated(await account.value.client.apiKeys.create(body, { idempotencyKey }));
          form.set("name", "");
          reload();
        }}
      >
        <TextField label="Name" {...form.field("name")} autocomplete="off" />
        <fieldset class="field">
          <legend>
            <b>Scopes</b>
          </legend>
          <div class="choices">
            {scopes.map((scope) => (
              <CheckField
                key={scope}
                label={<code>{scope}</code>}
                checked={form.values.scopes.includes(scope)}
                onInput={(isOn) => toggle(scope, isOn)}
              />
            ))}
          </div>
          {form.fault("scopes") !== undefined && <p class="fault">{form.fault("scopes")}</p>}
        </fieldset>
        {created && (
          <Notice tone="good">
            <p>The secret of {created.name} is here once. Store it now.</p>
            <Copyable text={`${created.id}:${created.secret}`} label="the key and its secret" />
          </Notice>
        )}
      </FormBody>
    </Card>
  );
}
