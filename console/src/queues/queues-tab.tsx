import type { Queue } from "@holdfast/sdk/responses.ts";
import { durationText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Badge, Card } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf } from "../router/location.ts";
import type { TabProps } from "../services/tab-props.ts";
import { account, refusalOf } from "../session/account.ts";
import { pollMsOf, toneOf } from "../tone.ts";
import { QueueFields } from "./queue-fields.tsx";
import { settingsOf } from "./queue-view.ts";

/** Queues in the service's databases. */
export function QueuesTab({ service: { id } }: TabProps) {
  const live = useLive<readonly Queue[]>(
    `queues ${id}`,
    (signal) => account.value.client.queues.list(id, { signal }).toArray(),
    { service: id, pollIntervalMs: (data) => pollMsOf(data?.map(({ status }) => status)) },
  );
  return (
    <>
      <LiveTable
        title="Queues"
        live={live}
        keyOf={({ name }) => name}
        icon="list"
        empty="No queues yet"
        columns={[
          [
            "Name",
            ({ name }) => (
              <a class="strong" href={hrefOf("services", id, "queues", name)}>
                {name}
              </a>
            ),
          ],
          ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
          ["Database", ({ database_name: database }) => database],
          ["Visibility timeout", ({ visibility_timeout_seconds: seconds }) => durationText(seconds)],
          ["Attempts", ({ max_attempts: attempts }) => attempts],
          ["Created", ({ created_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">A queue is a table of messages that workers claim, over SQL or HTTP. Create one below.</p>
      </LiveTable>
      <NewQueue serviceId={id} reload={live.reload} />
    </>
  );
}

function NewQueue({ serviceId, reload }: { readonly serviceId: string; readonly reload: () => void }) {
  const form = useForm({ name: "", timeout: "30", attempts: "5", hasDead: true });
  return (
    <Card title="Create a queue">
      <FormBody
        form={form}
        action="Create queue"
        icon="plus"
        refusal={refusalOf("services:write")}
        send={async ({ name, ...input }, idempotencyKey) => {
          await account.value.client.queues.create(serviceId, { name, ...settingsOf(input) }, { idempotencyKey });
          form.set("name", "");
          reload();
        }}
      >
        <TextField label="Name" {...form.field("name")} autocomplete="off" />
        <QueueFields form={form} />
      </FormBody>
    </Card>
  );
}
