import { useState } from "preact/hooks";
import type { CreatedToken, ManagedService, Token } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { SelectField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Card, Copyable, PageHead } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import { ScopesField } from "./scopes-field.tsx";
import { accessText, deletionScope, lifetimes, newTokenOf, type TokenInput } from "./token-view.ts";

const pageSize = 200;

/** Bearer tokens of the organization; the page shows a new one once. */
export function TokensPage() {
  const { client, me } = account.value;
  const live = useLive<readonly Token[]>("tokens", async (signal) => {
    for await (const { entries } of client.tokens.list({ signal, limit: pageSize }).pages()) return entries;
    return [];
  });
  return (
    <>
      <PageHead title="Tokens" about="Credentials for a limited time, with some of the scopes of their creator" />
      <LiveTable
        title="Tokens"
        live={live}
        keyOf={({ id }) => id}
        icon="ticket"
        empty="No tokens"
        columns={[
          ["Creator", ({ created_by: creator }) => <b>{creator ?? "unknown"}</b>],
          ["Id", ({ id }) => <span class="mono small">{id}</span>],
          ["Scopes", ({ scopes }) => <span class="quiet">{scopes.join(", ")}</span>],
          ["Accesses", (token) => accessText(token)],
          ["Expires", ({ expires_at: time }) => <Age time={time} />],
          ["Last use", (token) => <LastUse token={token} />],
          [
            "",
            (token) => (
              <DestroyButton
                text="Revoke"
                refusal={refusalOf(deletionScope(token, me.id))}
                title="Revoke the token"
                name={token.id.slice(-8)}
                action="Revoke token"
                destroy={() => client.tokens.delete(token.id).then(live.reload)}
              >
                <p>
                  Calls with {token.id}, and with tokens that it created, are refused immediately. A token of an app is
                  replaced when the app is deployed again.
                </p>
              </DestroyButton>
            ),
          ],
        ]}
      >
        <p class="quiet">Create one below for a script, or for a colleague who needs access for an hour.</p>
      </LiveTable>
      <NewTokenCard reload={live.reload} />
    </>
  );
}

function LastUse({ token: { last_used_at: time, last_used_from: address } }: { readonly token: Token }) {
  return (
    <>
      <Age time={time} />
      {address !== null && <p class="small quiet mono">{address}</p>}
    </>
  );
}

function NewTokenCard({ reload }: { readonly reload: () => void }) {
  const { client } = account.value;
  const [created, setCreated] = useState<CreatedToken | undefined>();
  const services = useLive<readonly ManagedService[]>("services of tokens", async (signal) => {
    for await (const { entries } of client.services.list({}, { signal, limit: pageSize }).pages()) return entries;
    return [];
  });
  const form = useForm<TokenInput>({ scopes: [], lifetime: "3600", service: "" });
  return (
    <Card title="Create a token">
      <FormBody
        form={form}
        action="Create token"
        icon="plus"
        refusal={refusalOf("keys:read")}
        send={async (input, idempotencyKey) => {
          setCreated(await client.tokens.create(newTokenOf(input), { idempotencyKey }));
          reload();
        }}
      >
        <div class="halves">
          <SelectField label="Valid for" {...form.field("lifetime", "ttl_seconds")} options={lifetimes} />
          <SelectField
            label="Accesses"
            {...form.field("service", "resources")}
            options={[
              ["", "Everything in its scopes"],
              ...(services.data ?? []).map(({ id, name }) => [id, `Only ${name}`] as const),
            ]}
          />
        </div>
        <ScopesField
          chosen={form.values.scopes}
          onInput={(scopes) => form.set("scopes", scopes)}
          fault={form.fault("scopes")}
        />
        {created && (
          <Notice tone="good">
            <p>The token is here once. Store it now.</p>
            <Copyable text={created.token} label="the token" />
          </Notice>
        )}
      </FormBody>
    </Card>
  );
}
