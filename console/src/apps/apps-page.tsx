import type { App } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Badge, Card, PageHead } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { toneOf } from "../tone.ts";

/** Apps of the organization, which attach to databases and may have a sign-in. */
export function AppsPage() {
  const live = useLive<readonly App[]>("apps", (signal) => account.value.client.apps.list({ signal }).toArray());
  return (
    <>
      <PageHead title="Apps and sign-in" about="Apps with their databases, and the sign-in of their users" />
      <LiveTable
        title="Apps"
        live={live}
        keyOf={({ id }) => id}
        icon="door"
        empty="No apps yet"
        columns={[
          [
            "Name",
            ({ id, name }) => (
              <a class="strong" href={hrefOf("apps", id)}>
                {name}
              </a>
            ),
          ],
          ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
          ["Address", ({ home_url: url }) => <span class="quiet">{url}</span>],
          ["Databases", ({ attachments }) => attachments.length],
          ["Created", ({ created_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">Register an app below, attach a PostgreSQL service, and enable the sign-in of its users.</p>
      </LiveTable>
      <NewApp />
    </>
  );
}

function NewApp() {
  const form = useForm({ name: "", home: "" });
  return (
    <Card title="Register an app">
      <FormBody
        form={form}
        action="Register app"
        icon="plus"
        refusal={refusalOf("apps:write")}
        send={async ({ name, home }, idempotencyKey) => {
          const body = { name, ...(home !== "" && { home_url: home }) };
          const { id } = await account.value.client.apps.create(body, { idempotencyKey });
          openPage(hrefOf("apps", id));
        }}
      >
        <div class="halves">
          <TextField label="Name" {...form.field("name")} autocomplete="off" />
          <TextField
            label="Address of the app"
            help="Such as https://shop.example.com"
            {...form.field("home", "home_url")}
            autocomplete="off"
          />
        </div>
      </FormBody>
    </Card>
  );
}
