import { useState } from "preact/hooks";
import type { App, Attachment, ManagedService } from "@holdfast/sdk/responses.ts";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Empty, Notice } from "../parts/notice.tsx";
import { Badge, Card, Copyable } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import type { AppProps } from "./app-props.ts";
import {
  type Attachable,
  type AttachmentInput,
  attachableTo,
  attachmentOf,
  changeRefusal,
  environmentText,
  isDatabase,
} from "./hosted-view.ts";

const pages: ReadonlyMap<string, string> = new Map([
  ["files", "files"],
  ["app", "apps"],
]);

/** Databases, files services and apps that are attached to the app, and a form that attaches another. */
export function AttachmentsTab({ app, reload }: AppProps) {
  const { apps } = account.value.client;
  const resources = useResources();
  const nameOf = (id: string) => resources?.flat().find((each) => each.id === id)?.name ?? id;
  const refusal = refusalOf("apps:write") ?? changeRefusal(app);
  return (
    <>
      <Card title="Attachments" flush>
        {app.attachments.length === 0 ? (
          <Empty icon="database" title="Nothing is attached">
            <p class="quiet">
              {app.hosted === null
                ? "Attach a PostgreSQL service below: the users of the app are stored in it."
                : "Attach a database below: the app gets a user in it, and its address as a variable."}
            </p>
          </Empty>
        ) : (
          <Table
            title="Attachments"
            entries={app.attachments}
            keyOf={({ id }) => id}
            columns={[
              [
                "Resource",
                ({ kind, service_id: id }) => (
                  <a class="strong" href={hrefOf(pages.get(kind) ?? "services", id)}>
                    {nameOf(id)}
                  </a>
                ),
              ],
              ["Kind", ({ kind }) => kind],
              ["Database", ({ database_name: name }) => name],
              ["User or key", ({ username, access_key_id: key }) => <span class="mono small">{username ?? key}</span>],
              ["Prefix", ({ prefix }) => <span class="mono small">{prefix}</span>],
              ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
              [
                "",
                ({ id, service_id: of, kind, database_name: database }) => (
                  <DestroyButton
                    text="Detach"
                    refusal={refusal}
                    title="Detach"
                    name={database || of.slice(-8)}
                    action="Detach"
                    destroy={() => apps.detach(app.id, id).then(reload)}
                  >
                    <p>
                      {isDatabase(kind) ? "Its user in the database ends with all sessions" : "Its access ends"} within
                      5 seconds{app.hosted === null ? "" : ", and the app is deployed without its variables"}. The data
                      stay.
                    </p>
                  </DestroyButton>
                ),
              ],
            ]}
          />
        )}
      </Card>
      <NewAttachmentCard app={app} choices={resources && attachableTo(app, ...resources)} reload={reload} />
    </>
  );
}

const maxChoices = 200;

/** Database services, files services and apps. */
type Resources = readonly [readonly ManagedService[], readonly ManagedService[], readonly App[]];

/** The resources of the organization; undefined until they are loaded. */
function useResources(): Resources | undefined {
  const { apps, files, services } = account.value.client;
  const live = useLive<Resources>("attachable resources", async (signal) => {
    const first = async <T,>(list: { pages(): AsyncIterable<{ readonly entries: readonly T[] }> }) => {
      for await (const { entries } of list.pages()) return entries;
      return [];
    };
    const options = { signal, limit: maxChoices };
    return Promise.all([
      refusalOf("services:read") === undefined ? first(services.list({}, options)) : [],
      refusalOf("files:read") === undefined ? first(files.list({}, options)) : [],
      first(apps.list(options)),
    ]);
  });
  return live.data;
}

interface NewAttachmentProps extends AppProps {
  readonly choices: readonly Attachable[] | undefined;
}

function NewAttachmentCard({ app, choices, reload }: NewAttachmentProps) {
  const [attached, setAttached] = useState<Attachment | undefined>();
  const form = useForm<AttachmentInput & { readonly target: string }>({
    target: "",
    database: "",
    prefix: "",
    access: "readwrite",
  });
  const target = choices?.find(({ id }) => id === form.values.target) ?? choices?.[0];
  const variables = Object.fromEntries((attached?.variables ?? []).map(({ name, value }) => [name, value]));
  return (
    <Card title="Attach">
      <FormBody
        form={form}
        action="Attach"
        icon="plus"
        refusal={
          refusalOf("apps:write") ??
          refusalOf("services:write") ??
          (target?.kind === "files" ? refusalOf("files:write") : undefined) ??
          changeRefusal(app) ??
          (target === undefined ? "There is nothing that could be attached." : undefined)
        }
        send={async (input, idempotencyKey) => {
          if (target === undefined) return;
          const { apps } = account.value.client;
          setAttached(await apps.attach(app.id, attachmentOf(target, input), { idempotencyKey }));
          reload();
        }}
      >
        <div class="halves">
          <SelectField
            label="Resource"
            value={target?.id ?? ""}
            options={(choices ?? []).map(({ id, title }) => [id, title] as const)}
            onInput={(id) => form.set("target", id)}
            fault={form.fault("service_id")}
          />
          {target !== undefined && isDatabase(target.kind) && (
            <TextField
              label="Database"
              help="Empty for the default database"
              {...form.field("database", "database_name")}
              autocomplete="off"
            />
          )}
          {target?.kind === "files" && (
            <SelectField
              label="Access"
              {...form.field("access")}
              options={[
                ["readwrite", "Read and write"],
                ["readonly", "Only read"],
              ]}
            />
          )}
          {app.hosted !== null && (
            <TextField
              label="Prefix of its variables"
              help="Such as ORDERS; empty for the name of the resource"
              {...form.field("prefix")}
              autocomplete="off"
            />
          )}
        </div>
        {Object.keys(variables).length > 0 && (
          <Notice tone="good">
            <p>The variables of the app's files services, with their secrets, are here once. Store them now.</p>
            <Copyable text={environmentText(variables)} label="the variables" />
          </Notice>
        )}
      </FormBody>
    </Card>
  );
}
