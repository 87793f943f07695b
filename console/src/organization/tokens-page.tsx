import { useState } from "preact/hooks";
import type { CreatedToken, ManagedService, Token } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { CheckField, SelectField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Card, Copyable, PageHead } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { ScopesField } from "./scopes-field.tsx";
import {
  accessOf,
  deletionScope,
  lifetimes,
  newTokenOf,
  possibleScopes,
  tokenFault,
  type TokenInput,
} from "./token-view.ts";

const pageSize = 200;

/** Bearer tokens of the organization; the page shows a new one once. */
export function TokensPage() {
  const { client, me } = account.value;
  const live = useLive<readonly Token[]>("tokens", async (signal) => {
    for await (const { entries } of client.tokens.list({ signal, limit: pageSize }).pages()) return entries;
    return [];
  });
  const services = useLive<readonly ManagedService[]>("services of tokens", (signal) =>
    refusalOf("services:read") === undefined
      ? client.services.list({}, { signal, limit: pageSize }).toArray()
      : Promise.resolve([]),
  );
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
          [
            "Creator",
            ({ id, created_by: creator }) => (
              <>
                <b>{creator ?? "unknown"}</b>
                {creator === "installation" && (
                  <p class="small quiet">The first token of the installation, which the command on its host uses</p>
                )}
                <code class="payload small quiet">{id}</code>
              </>
            ),
          ],
          ["Scopes", ({ scopes }) => <span class="quiet">{scopes.join(", ")}</span>],
          ["Accesses", (token) => <Access token={token} services={services.data ?? []} />],
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
      <NewTokenCard services={services.data ?? []} reload={live.reload} />
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

interface AccessProps {
  readonly token: Token;
  readonly services: readonly ManagedService[];
}

/** The services that a limited token sees and lists, each with its page, and what it may not see. */
function Access({ token, services }: AccessProps) {
  const access = accessOf(token, services);
  if (access.kind === "everything") return <>everything in its scopes</>;
  return (
    <>
      {access.sees.length === 0 ? (
        "nothing"
      ) : (
        <span class="row">
          {access.sees.map(({ id, name }) =>
            name === undefined ? (
              <span class="mono small" key={id}>
                {id}
              </span>
            ) : (
              <a class="strong" key={id} href={hrefOf("services", id)}>
                {name}
              </a>
            ),
          )}
        </span>
      )}
      <p class="small quiet">May not see: {access.lacks}</p>
    </>
  );
}

interface NewTokenProps {
  readonly services: readonly ManagedService[];
  readonly reload: () => void;
}

function NewTokenCard({ services, reload }: NewTokenProps) {
  const { client, me } = account.value;
  const [created, setCreated] = useState<CreatedToken | undefined>();
  const form = useForm<TokenInput>({ scopes: [], lifetime: "3600", limit: "", services: [] });
  const { scopes, limit, services: chosen } = form.values;
  return (
    <Card title="Create a token">
      <FormBody
        form={form}
        action="Create token"
        icon="plus"
        refusal={refusalOf("keys:read") ?? tokenFault(form.values)}
        send={async (input, idempotencyKey) => {
          setCreated(await client.tokens.create(newTokenOf(input), { idempotencyKey }));
          reload();
        }}
      >
        <div class="halves">
          <SelectField label="Valid for" {...form.field("lifetime", "ttl_seconds")} options={lifetimes} />
          <SelectField
            label="Accesses"
            value={limit}
            onInput={(value) => form.set("limit", value === "services" ? value : "")}
            options={[
              ["", "Everything in its scopes"],
              ["services", "Some services alone"],
            ]}
            help={
              limit === "services" ? "It sees and lists these services; everything else is absent for it" : undefined
            }
          />
        </div>
        {limit === "services" && (
          <fieldset class="field">
            <legend>
              <b>Services</b>
            </legend>
            {services.length === 0 && <p class="quiet">There is no service yet.</p>}
            <div class="choices">
              {services.map(({ id, name }) => (
                <CheckField
                  key={id}
                  label={name}
                  checked={chosen.includes(id)}
                  onInput={(isOn) =>
                    form.set("services", isOn ? [...chosen, id] : chosen.filter((each) => each !== id))
                  }
                />
              ))}
            </div>
            <p class="fault" hidden={form.fault("resources") === undefined}>
              {form.fault("resources")}
            </p>
          </fieldset>
        )}
        <ScopesField
          scopes={possibleScopes(limit, me.scopes)}
          chosen={scopes}
          onInput={(values) => form.set("scopes", values)}
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
