import { useState } from "preact/hooks";
import type { ApiKey, CreatedApiKey } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Button } from "../parts/button.tsx";
import { CheckField, TextField } from "../parts/field.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { Age, Card, Copyable, DestroyDialog, PageHead } from "../parts/parts.tsx";
import { useAction } from "../parts/use-action.ts";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";

/** API keys of the organization; the secret of a new one is on the page once. */
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

function Deletion({ apiKey, reload }: { readonly apiKey: ApiKey; readonly reload: () => void }) {
  const [isAsking, setAsking] = useState(false);
  const action = useAction();
  const remove = () =>
    action.run(async () => {
      await account.value.client.apiKeys.delete(apiKey.id);
      setAsking(false);
      reload();
    });
  return (
    <>
      <Button kind="plain" refusal={refusalOf("keys:write")} onClick={() => setAsking(true)}>
        Delete
      </Button>
      {isAsking && (
        <DestroyDialog
          title={`Delete ${apiKey.name}`}
          name={apiKey.name}
          action="Delete key"
          busy={action.isBusy}
          onConfirm={remove}
          onClose={() => setAsking(false)}
        >
          <p>Its calls are refused at once. It cannot come back.</p>
          <ErrorNotice error={action.error} />
        </DestroyDialog>
      )}
    </>
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
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          form.submit(async (body, idempotencyKey) => {
            setCreated(await account.value.client.apiKeys.create(body, { idempotencyKey }));
            form.set("name", "");
            reload();
          });
        }}
      >
        <TextField
          label="Name"
          value={form.values.name}
          onInput={(value) => form.set("name", value)}
          fault={form.fault("name")}
          autocomplete="off"
        />
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
        <ErrorNotice error={form.error} />
        {created && (
          <Notice tone="good">
            <p>The secret of {created.name} is here once. Store it now.</p>
            <Copyable text={`${created.id}:${created.secret}`} label="the key and its secret" />
          </Notice>
        )}
        <div class="row">
          <Button type="submit" icon="plus" busy={form.isBusy} refusal={refusalOf("keys:write")}>
            Create key
          </Button>
        </div>
      </form>
    </Card>
  );
}
