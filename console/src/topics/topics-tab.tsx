import type { ConsumerGroup, Topic } from "@holdfast/sdk/responses.ts";
import { bytesText, numberText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Badge, Card } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf } from "../router/location.ts";
import type { TabProps } from "../services/tab-props.ts";
import { account, refusalOf } from "../session/account.ts";
import { groupState, newTopicOf, settingsFault, type TopicInput } from "./topic-view.ts";

const maxEntries = 200;

/** Topics and consumer groups in the service's engine, and a form for a new topic. */
export function TopicsTab({ service: { id } }: TabProps) {
  const { topics, consumerGroups } = account.value.client;
  const options = { service: id, pollIntervalMs: 10_000 };
  const live = useLive<readonly Topic[]>(
    `topics ${id}`,
    (signal) => topics.list(id, { signal, limit: maxEntries }).toArray(),
    options,
  );
  const groups = useLive<readonly ConsumerGroup[]>(
    `groups ${id}`,
    (signal) => consumerGroups.list(id, { signal, limit: maxEntries }).toArray(),
    options,
  );
  return (
    <>
      <LiveTable
        title="Topics"
        live={live}
        keyOf={({ name }) => name}
        icon="list"
        empty="No topics yet"
        columns={[
          [
            "Name",
            ({ name }) => (
              <a class="strong" href={hrefOf("services", id, "topics", name)}>
                {name}
              </a>
            ),
          ],
          ["Partitions", ({ partitions }) => <span class="number">{numberText(partitions)}</span>],
          ["Copies", ({ replication_factor: copies }) => <span class="number">{copies}</span>],
          ["Size of all copies", ({ size_bytes: size }) => <span class="number">{bytesText(size)}</span>],
          [
            "Settings",
            ({ config }) => {
              const { length } = Object.keys(config);
              return length === 0 ? <span class="quiet">the service's</span> : `${length} set`;
            },
          ],
        ]}
      >
        <p class="quiet">Create one below, or connect a client: the Connection tab has its settings.</p>
      </LiveTable>
      <NewTopic serviceId={id} reload={live.reload} />
      <LiveTable
        title="Consumer groups"
        live={groups}
        keyOf={({ name }) => name}
        icon="people"
        empty="No consumer groups"
        columns={[
          [
            "Name",
            ({ name }) => (
              <a class="strong" href={hrefOf("services", id, "groups", name)}>
                {name}
              </a>
            ),
          ],
          ["State", (group) => <GroupBadge group={group} />],
          ["Lag", ({ lag }) => <span class="number">{numberText(lag)} records</span>],
        ]}
      >
        <p class="quiet">A group appears when its first consumer commits an offset.</p>
      </LiveTable>
    </>
  );
}

export function GroupBadge({ group }: { readonly group: ConsumerGroup }) {
  const { text, tone } = groupState(group);
  return <Badge tone={tone}>{text}</Badge>;
}

function NewTopic({ serviceId, reload }: { readonly serviceId: string; readonly reload: () => void }) {
  const form = useForm<TopicInput>({ name: "", partitions: "", copies: "", settings: "" });
  const fault = settingsFault(form.values.settings);
  return (
    <Card title="Create a topic">
      <FormBody
        form={form}
        action="Create topic"
        icon="plus"
        refusal={refusalOf("services:write") ?? fault}
        send={async (input, idempotencyKey) => {
          await account.value.client.topics.create(serviceId, newTopicOf(input), { idempotencyKey });
          form.set("name", "");
          reload();
        }}
      >
        <div class="halves">
          <TextField
            label="Name"
            help="Letters, digits, dots, hyphens and underscores"
            {...form.field("name")}
            autocomplete="off"
          />
          <TextField
            label="Partitions"
            help="Empty for the parameter num.partitions; they can only be added later"
            type="number"
            min={1}
            max={10_000}
            {...form.field("partitions")}
          />
          <TextField
            label="Copies of each partition"
            help="Each on a different node; empty for one on each node, at most 3"
            type="number"
            min={1}
            max={5}
            {...form.field("copies", "replication_factor")}
          />
        </div>
        <TextField
          label="Settings"
          help="A line name=value each, such as retention.ms=86400000; all others are the service's parameters"
          lines
          {...form.field("settings", "config")}
          fault={fault ?? form.fault("config")}
        />
      </FormBody>
    </Card>
  );
}
