import type { ManagedService } from "@holdfast/sdk/responses.ts";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Empty } from "../parts/notice.tsx";
import { Age, Badge, Card, Copyable, Facts } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import type { AppProps } from "./app-props.ts";

/** Facts of the app, its databases and domains, and its deletion. */
export function AppOverview({ app, reload }: AppProps) {
  const { apps } = account.value.client;
  const refusal = refusalOf("apps:write");
  return (
    <>
      <Card title="About">
        <Facts
          facts={[
            ["Hosting", app.hosting],
            ["Address", app.home_url ?? "none"],
            ["Created", <Age key="created" time={app.created_at} />],
          ]}
        />
      </Card>
      <Card title="Attachments" flush>
        {app.attachments.length === 0 ? (
          <Empty icon="database" title="Nothing is attached">
            <p class="quiet">Attach a PostgreSQL service below: the users of the app are stored in it.</p>
          </Empty>
        ) : (
          <Table
            title="Attachments"
            entries={app.attachments}
            keyOf={({ id }) => id}
            columns={[
              [
                "Service",
                ({ kind, service_id: id }) => (kind === "files" ? id : <a href={hrefOf("services", id)}>{id}</a>),
              ],
              ["Database", ({ kind, database_name: name }) => (kind === "files" ? "files service" : name)],
              ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
              [
                "",
                ({ id }) => (
                  <ActionButton kind="plain" refusal={refusal} run={() => apps.detach(app.id, id).then(reload)}>
                    Detach
                  </ActionButton>
                ),
              ],
            ]}
          />
        )}
      </Card>
      <NewAttachment app={app} reload={reload} />
      <Card title="Domains" flush>
        {app.domains.length === 0 ? (
          <Empty icon="search" title="No domains">
            <p class="quiet">A domain of your own can be the address of the sign-in.</p>
          </Empty>
        ) : (
          <Table
            title="Domains"
            entries={app.domains}
            keyOf={({ id }) => id}
            columns={[
              ["Name", ({ name }) => <b>{name}</b>],
              ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
              [
                "Record that proves it",
                ({ verification: { type, name, value } }) => <code class="payload">{`${name} ${type} ${value}`}</code>,
              ],
              [
                "",
                ({ id }) => (
                  <ActionButton
                    kind="plain"
                    refusal={refusal}
                    run={() => apps.verifyDomain(app.id, id).then(reload)}
                    done="The record is correct"
                  >
                    Verify
                  </ActionButton>
                ),
              ],
            ]}
          />
        )}
      </Card>
      <NewDomain app={app} reload={reload} />
      <Card title="Identifier">
        <Copyable text={app.id} label="id of the app" />
      </Card>
      <DeletionCard
        kind="app"
        name={app.name}
        refusal={refusal}
        destroy={async () => {
          await apps.delete(app.id);
          openPage(hrefOf("apps"));
        }}
      >
        <p>The app's sign-in ends. Its databases and their data stay.</p>
      </DeletionCard>
    </>
  );
}

function NewAttachment({ app, reload }: AppProps) {
  const { apps, services } = account.value.client;
  const all = useLive<readonly ManagedService[]>("services of apps", async (signal) => {
    const list = services.list({ database_type: "postgresql" }, { signal, limit: 200 });
    for await (const { entries } of list.pages()) return entries;
    return [];
  });
  const form = useForm({ service: "", database: "" });
  const choices = (all.data ?? []).map(({ id, name }) => [id, name] as const);
  const service = form.values.service || choices[0]?.[0] || "";
  return (
    <Card title="Attach a database">
      <FormBody
        form={form}
        action="Attach"
        icon="plus"
        refusal={
          refusalOf("apps:write") ??
          refusalOf("services:write") ??
          (choices.length === 0 ? "There is no PostgreSQL service." : undefined)
        }
        send={async ({ database }, idempotencyKey) => {
          const body = { service_id: service, ...(database !== "" && { database_name: database }) };
          await apps.attach(app.id, body, { idempotencyKey });
          reload();
        }}
      >
        <div class="halves">
          <SelectField
            label="Service"
            value={service}
            options={choices}
            onInput={(id) => form.set("service", id)}
            fault={form.fault("service_id")}
          />
          <TextField
            label="Database"
            help="Empty for the default database"
            {...form.field("database", "database_name")}
            autocomplete="off"
          />
        </div>
      </FormBody>
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
