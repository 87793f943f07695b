import { useEffect, useState } from "preact/hooks";
import type { DeadMessage, Queue, QueueMessage } from "@holdfast/sdk/responses.ts";
import { LivePage } from "../live/live-page.tsx";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { Button } from "../parts/button.tsx";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Facts } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useAction } from "../parts/use-action.ts";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { pollMsOf, toneOf } from "../tone.ts";
import { QueueFields } from "./queue-fields.tsx";
import { countFacts, payloadOf, payloadText, type QueueInput, settingsOf } from "./queue-view.ts";

const maxMessages = 50;

interface QueueProps {
  readonly serviceId: string;
  readonly name: string;
}

/** One queue: counts, its first messages without a claim, and its dead messages. */
export function QueuePage({ serviceId, name }: QueueProps) {
  const { queues } = account.value.client;
  const options = { service: serviceId, pollIntervalMs: 5_000 };
  const live = useLive<Queue>(`queue ${serviceId} ${name}`, (signal) => queues.get(serviceId, name, { signal }), {
    service: serviceId,
    pollIntervalMs: (data) => pollMsOf(data && [data.status]),
  });
  const messages = useLive<readonly QueueMessage[]>(
    `messages ${serviceId} ${name}`,
    async (signal) => (await queues.messages(serviceId, name, { limit: maxMessages }, { signal })).messages,
    options,
  );
  const dead = useLive<readonly DeadMessage[]>(
    `dead ${serviceId} ${name}`,
    async (signal) => {
      for await (const { entries } of queues.dead(serviceId, name, { limit: maxMessages, signal }).pages())
        return entries;
      return [];
    },
    options,
  );
  const reload = () => {
    messages.reload();
    dead.reload();
  };
  const refusal = refusalOf("services:data");
  const crumbs = (
    <>
      <a href={hrefOf("services")}>Services</a> / <a href={hrefOf("services", serviceId, "queues")}>Queues</a>
    </>
  );
  return (
    <LivePage
      live={live}
      kind="queue"
      icon="list"
      crumbs={crumbs}
      title={(queue) => queue.name}
      beside={({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>}
    >
      {(queue) => (
        <>
          {queue.error_message !== null && <Notice tone="bad">{queue.error_message}</Notice>}
          <Counts serviceId={serviceId} name={name} />
          <LiveTable
            title={`First ${maxMessages} messages`}
            live={messages}
            keyOf={({ id }) => String(id)}
            icon="list"
            empty="No messages"
            columns={[
              ["Id", ({ id }) => <span class="number">{id}</span>],
              ["State", ({ state }) => <Badge tone={toneOf(state)}>{state}</Badge>],
              ["Payload", ({ payload }) => <Payload payload={payload} />],
              ["Attempts", (message) => `${message.attempt_count} of ${message.max_attempts}`],
              ["Enqueued", ({ enqueued_at: time }) => <Age time={time} />],
              ["Last error", ({ last_error: error }) => <span class="small">{error}</span>],
            ]}
          />
          <LiveTable
            title="Dead messages"
            live={dead}
            keyOf={({ id }) => String(id)}
            icon="check"
            empty="No message is dead"
            actions={
              (dead.data ?? []).length > 0 && (
                <ActionButton
                  refusal={refusal}
                  run={() => queues.redrive(serviceId, name).then(reload)}
                  done="Dead messages return to the queue"
                >
                  Redrive all
                </ActionButton>
              )
            }
            columns={[
              ["Id", ({ id }) => <span class="number">{id}</span>],
              ["Payload", ({ payload }) => <Payload payload={payload} />],
              ["Attempts", ({ attempt_count: attempts }) => attempts],
              ["Died", ({ died_at: time }) => <Age time={time} />],
              ["Last error", ({ last_error: error }) => <span class="small">{error}</span>],
              [
                "",
                ({ id }) => (
                  <ActionButton
                    kind="plain"
                    refusal={refusal}
                    run={() => queues.redrive(serviceId, name, [id]).then(reload)}
                    done={`Message ${id} returns to the queue`}
                  >
                    Redrive
                  </ActionButton>
                ),
              ],
            ]}
          />
          <NewMessage serviceId={serviceId} name={name} reload={reload} />
          <Settings queue={queue} reload={live.reload} />
          <Deletions serviceId={serviceId} name={name} reload={reload} />
        </>
      )}
    </LivePage>
  );
}

function Settings({ queue, reload }: { readonly queue: Queue; readonly reload: () => void }) {
  const form = useForm<QueueInput>({
    timeout: String(queue.visibility_timeout_seconds),
    attempts: String(queue.max_attempts),
    hasDead: queue.dlq_enabled,
  });
  return (
    <Card title="Settings">
      <FormBody
        form={form}
        action="Save"
        refusal={refusalOf("services:write")}
        send={async (_, __, edited) => {
          await account.value.client.queues.update(queue.service_id, queue.name, settingsOf(edited));
          showToast("good", "Saved");
          reload();
        }}
      >
        <Facts
          facts={[
            ["Database", queue.database_name],
            ["Created", <Age key="created" time={queue.created_at} />],
          ]}
        />
        <QueueFields form={form} />
      </FormBody>
    </Card>
  );
}

function Payload({ payload }: { readonly payload: unknown }) {
  return <code class="payload">{payloadText(payload)}</code>;
}

const countMs = 500;
const maxCounts = 40;

/** The exact number of messages by state, which a task of the platform counts. */
function Counts({ serviceId, name }: QueueProps) {
  const { queues } = account.value.client;
  const [result, setResult] = useState<unknown>();
  const action = useAction();
  const count = async () => {
    const { task_id: taskId } = await queues.count(serviceId, name);
    for (let request = 0; request < maxCounts; request += 1) {
      const { status, result: counts, error } = await queues.counts(serviceId, name, taskId);
      if (status === "completed") return setResult(counts);
      if (status === "failed") throw new Error(error?.message ?? "The count failed.");
      await new Promise((resolve) => {
        setTimeout(resolve, countMs);
      });
    }
    throw new Error("The count takes long. Try again later.");
  };
  useEffect(() => action.run(count), []);
  return (
    <Card
      title="Messages"
      actions={
        <Button busy={action.isBusy} onClick={() => action.run(count)}>
          Count again
        </Button>
      }
    >
      <div class="stack">
        <ErrorNotice error={action.error} />
        {result !== undefined && <Facts facts={countFacts(result)} />}
        {result === undefined && action.isBusy && <p class="quiet">Counting</p>}
      </div>
    </Card>
  );
}

function NewMessage({ serviceId, name, reload }: QueueProps & { readonly reload: () => void }) {
  const form = useForm({ payload: "" });
  const { payload, fault } = payloadOf(form.values.payload);
  const isEmpty = form.values.payload === "";
  return (
    <Card title="Enqueue a message">
      <FormBody
        form={form}
        action="Enqueue"
        refusal={refusalOf("services:data") ?? (isEmpty ? "The payload is empty." : fault)}
        send={async (_, idempotencyKey) => {
          const body = { messages: payload === undefined ? [] : [{ payload }] };
          await account.value.client.queues.enqueue(serviceId, name, body, { idempotencyKey });
          form.set("payload", "");
          showToast("good", "The message is in the queue");
          reload();
        }}
      >
        <TextField
          label="Payload"
          help="A JSON object"
          lines
          value={form.values.payload}
          onInput={(text) => form.set("payload", text)}
          fault={(isEmpty ? undefined : fault) ?? form.fault("messages")}
        />
      </FormBody>
    </Card>
  );
}

function Deletions({ serviceId, name, reload }: QueueProps & { readonly reload: () => void }) {
  const { queues } = account.value.client;
  return (
    <Card title="Delete">
      <div class="row">
        <DestroyButton
          text="Delete all messages"
          refusal={refusalOf("services:data")}
          title={`Delete all messages of ${name}`}
          name={name}
          action="Delete messages"
          destroy={() => queues.purge(serviceId, name).then(reload)}
        >
          <p>Messages that workers have claimed are deleted too. Dead messages stay.</p>
        </DestroyButton>
        <DestroyButton
          text="Delete dead messages"
          refusal={refusalOf("services:data")}
          title={`Delete dead messages of ${name}`}
          name={name}
          action="Delete dead messages"
          destroy={() => queues.purgeDead(serviceId, name).then(reload)}
        >
          <p>Dead messages can no longer be redriven.</p>
        </DestroyButton>
        <DestroyButton
          text="Delete queue"
          kind="danger"
          refusal={refusalOf("services:write")}
          title={`Delete ${name}`}
          name={name}
          action="Delete queue"
          destroy={async () => {
            await queues.delete(serviceId, name);
            openPage(hrefOf("services", serviceId, "queues"));
          }}
        >
          <p>The queue accepts no messages, and all messages are deleted, with those that are dead.</p>
        </DestroyButton>
      </div>
    </Card>
  );
}
