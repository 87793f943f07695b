import type { AppDomain } from "@holdfast/sdk/responses.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Empty } from "../parts/notice.tsx";
import { Age, Badge, Card, Copyable } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import type { AppProps } from "./app-props.ts";

/** Domains of the app with the records that prove them, and a form that adds one. */
export function DomainsTab({ app, reload }: AppProps) {
  const { apps } = account.value.client;
  const refusal = refusalOf("apps:write");
  return (
    <>
      <Card title="Domains" flush>
        {app.domains.length === 0 ? (
          <Empty icon="search" title="No domains">
            <p class="quiet">
              {app.hosted === null
                ? "A domain of yours can be the address of the sign-in. Add it below."
                : "Clients reach the app at its own address. Add a domain of yours below."}
            </p>
          </Empty>
        ) : (
          <Table
            title="Domains"
            entries={app.domains}
            keyOf={({ id }) => id}
            columns={[
              ["Name", ({ name }) => <b>{name}</b>],
              ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
              ["Added", ({ created_at: time }) => <Age time={time} />],
              [
                "",
                ({ id, name, status }) => (
                  <span class="row end">
                    {status === "pending" && (
                      <ActionButton
                        kind="plain"
                        refusal={refusal}
                        run={() => apps.verifyDomain(app.id, id).then(reload)}
                        done="The record is correct"
                      >
                        Verify<span class="visually-hidden"> {name}</span>
                      </ActionButton>
                    )}
                    <DestroyButton
                      text="Delete"
                      refusal={refusal}
                      title={`Delete ${name}`}
                      name={name}
                      action="Delete domain"
                      destroy={() => apps.deleteDomain(app.id, id).then(reload)}
                    >
                      <p>Clients no longer reach the app at {name}.</p>
                    </DestroyButton>
                  </span>
                ),
              ],
            ]}
          />
        )}
      </Card>
      {app.domains
        .filter(({ status }) => status === "pending")
        .map((domain) => (
          <Record key={domain.id} domain={domain} />
        ))}
      <NewDomain app={app} reload={reload} />
    </>
  );
}

/** The record that proves a domain. */
function Record({ domain: { name, verification } }: { readonly domain: AppDomain }) {
  const { type, name: owner, value } = verification;
  return (
    <Card title={`Record that proves ${name}`}>
      <div class="stack">
        <p class="quiet">Create this {type} record at your DNS provider, then verify the domain.</p>
        <div class="field">
          <span class="label">Name</span>
          <Copyable text={owner} label={`the name of the record for ${name}`} />
        </div>
        <div class="field">
          <span class="label">Value</span>
          <Copyable text={value} label={`the value of the record for ${name}`} />
        </div>
      </div>
    </Card>
  );
}

function NewDomain({ app, reload }: AppProps) {
  const form = useForm({ name: "" });
  return (
    <Card title="Add a domain">
      <FormBody
        form={form}
        action="Add domain"
        icon="plus"
        refusal={refusalOf("apps:write")}
        send={async (body, idempotencyKey) => {
          await account.value.client.apps.addDomain(app.id, body, { idempotencyKey });
          form.set("name", "");
          showToast("good", "Create the record in DNS, then verify the domain");
          reload();
        }}
      >
        <TextField label="Name of the domain" {...form.field("name")} autocomplete="off" />
      </FormBody>
    </Card>
  );
}
