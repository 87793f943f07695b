import type { Topic } from "@holdfast/sdk/responses.ts";
import { bytesText, numberText } from "../format.ts";
import { LivePage } from "../live/live-page.tsx";
import { useLive } from "../live/use-live.ts";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Badge, Card, Facts } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { partitionState, settingsFault, settingsText, type TopicInput, topicChangeOf } from "./topic-view.ts";

interface TopicPageProps {
  readonly serviceId: string;
  readonly name: string;
}

/** One topic: its size, its partitions with their leaders, its settings and its deletion. */
export function TopicPage({ serviceId, name }: TopicPageProps) {
  const { topics } = account.value.client;
  const live = useLive<Topic>(`topic ${serviceId} ${name}`, (signal) => topics.get(serviceId, name, { signal }), {
    service: serviceId,
    pollIntervalMs: 10_000,
  });
  const listPath = hrefOf("services", serviceId, "topics");
  return (
    <LivePage
      live={live}
      kind="topic"
      icon="list"
      crumbs={
        <>
          <a href={hrefOf("services")}>Services</a> / <a href={listPath}>Topics</a>
        </>
      }
      title={(topic) => topic.name}
    >
      {(topic) => (
        <>
          <Card title="About">
            <Facts
              facts={[
                ["Partitions", numberText(topic.partitions)],
                ["Copies of each partition", topic.replication_factor],
                ["Size of all copies", bytesText(topic.size_bytes)],
                [
                  "Records",
                  numberText(
                    topic.partition_states.reduce(
                      (sum, { start_offset: start, end_offset: end }) => sum + end - start,
                      0,
                    ),
                  ),
                ],
              ]}
            />
          </Card>
          <Card title="Partitions" flush>
            <Table
              title="Partitions"
              entries={topic.partition_states}
              keyOf={({ partition }) => String(partition)}
              columns={[
                ["Partition", ({ partition }) => <b class="number">{partition}</b>],
                ["State", (partition) => <Badge {...badgeOf(partitionState(partition))} />],
                ["Leader", ({ leader }) => (leader === null ? "none" : `node ${leader}`)],
                ["Nodes with a copy", ({ replicas }) => replicas.join(", ")],
                [
                  "Records",
                  ({ start_offset: start, end_offset: end }) => <span class="number">{numberText(end - start)}</span>,
                ],
                [
                  "Offsets",
                  ({ start_offset: start, end_offset: end }) => (
                    <span class="number quiet">
                      {start} to {end}
                    </span>
                  ),
                ],
              ]}
            />
          </Card>
          <Settings topic={topic} reload={live.reload} />
          <DeletionCard
            kind="topic"
            name={topic.name}
            refusal={refusalOf("services:write")}
            destroy={async () => {
              await topics.delete(serviceId, name);
              openPage(listPath);
            }}
          >
            <p>All of its records are deleted. Only a restore of the service from a backup has them again.</p>
          </DeletionCard>
        </>
      )}
    </LivePage>
  );
}

function badgeOf({ text, tone }: ReturnType<typeof partitionState>) {
  return { tone, children: text };
}

interface SettingsProps {
  readonly topic: Topic;
  readonly reload: () => void;
}

function Settings({ topic, reload }: SettingsProps) {
  const form = useForm<TopicInput>({
    name: topic.name,
    partitions: String(topic.partitions),
    copies: "",
    settings: settingsText(topic.config),
  });
  const fault = settingsFault(form.values.settings);
  const isSame = Object.keys(topicChangeOf(form.values, topic)).length === 0;
  return (
    <Card title="Settings">
      <FormBody
        form={form}
        action="Save"
        kind="primary"
        refusal={refusalOf("services:write") ?? fault ?? (isSame ? "Nothing was changed." : undefined)}
        send={async (input) => {
          await account.value.client.topics.update(topic.service_id, topic.name, topicChangeOf(input, topic));
          showToast("good", "Saved");
          reload();
        }}
      >
        <TextField
          label="Partitions"
          help="They can be added, not removed; records with the same key may then be in another partition"
          type="number"
          min={topic.partitions}
          max={10_000}
          {...form.field("partitions")}
        />
        <TextField
          label="Settings"
          help="A line name=value each, such as retention.ms=86400000; without a line, the service's parameter applies"
          lines
          {...form.field("settings", "config")}
          fault={fault ?? form.fault("config")}
        />
      </FormBody>
    </Card>
  );
}
