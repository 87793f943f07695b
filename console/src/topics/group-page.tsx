import type { ConsumerGroup } from "@holdfast/sdk/responses.ts";
import { numberText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { LivePage } from "../live/live-page.tsx";
import { useLive } from "../live/use-live.ts";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Card, Facts } from "../parts/parts.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { groupRefusal, positionOf } from "./topic-view.ts";
import { GroupBadge } from "./topics-tab.tsx";

interface GroupPageProps {
  readonly serviceId: string;
  readonly name: string;
}

/** One consumer group: its lag by partition, a reset of its offsets, and its deletion. */
export function GroupPage({ serviceId, name }: GroupPageProps) {
  const { consumerGroups } = account.value.client;
  const live = useLive<ConsumerGroup>(
    `group ${serviceId} ${name}`,
    (signal) => consumerGroups.get(serviceId, name, { signal }),
    { service: serviceId, pollIntervalMs: 5_000 },
  );
  const listPath = hrefOf("services", serviceId, "topics");
  return (
    <LivePage
      live={live}
      kind="consumer group"
      icon="people"
      crumbs={
        <>
          <a href={hrefOf("services")}>Services</a> / <a href={listPath}>Topics</a>
        </>
      }
      title={(group) => group.name}
      beside={(group) => <GroupBadge group={group} />}
    >
      {(group) => (
        <>
          <Card title="About">
            <Facts
              facts={[
                ["Lag", `${numberText(group.lag)} records`],
                ["Topics", topicsOf(group).join(", ") || "none"],
                ["State of the engine", group.state],
              ]}
            />
          </Card>
          <LiveTable
            title="Offsets"
            live={{ ...live, data: group.offsets }}
            keyOf={({ topic, partition }) => `${topic} ${partition}`}
            icon="list"
            empty="No offsets"
            columns={[
              [
                "Topic",
                ({ topic }) => (
                  <a class="strong" href={hrefOf("services", serviceId, "topics", topic)}>
                    {topic}
                  </a>
                ),
              ],
              ["Partition", ({ partition }) => <span class="number">{partition}</span>],
              ["Next offset", ({ offset }) => <span class="number">{offset}</span>],
              ["End", ({ end_offset: end }) => <span class="number">{end}</span>],
              ["Lag", ({ lag }) => <span class="number">{numberText(lag)} records</span>],
            ]}
          >
            <p class="quiet">Its consumers have committed none.</p>
          </LiveTable>
          {group.offsets.length > 0 && <Reset group={group} reload={live.reload} />}
          <DeletionCard
            kind="group"
            name={group.name}
            refusal={refusalOf("services:write") ?? groupRefusal(group)}
            destroy={async () => {
              await consumerGroups.delete(serviceId, name);
              openPage(listPath);
            }}
          >
            <p>Its offsets are deleted. A consumer of this name begins where its own settings say.</p>
          </DeletionCard>
        </>
      )}
    </LivePage>
  );
}

function topicsOf({ offsets }: ConsumerGroup): readonly string[] {
  return [...new Set(offsets.map(({ topic }) => topic))];
}

interface ResetProps {
  readonly group: ConsumerGroup;
  readonly reload: () => void;
}

function Reset({ group, reload }: ResetProps) {
  const topics = topicsOf(group);
  const form = useForm({ topic: topics[0] ?? "", position: "earliest", time: "" });
  const { position } = form.values;
  return (
    <Card title="Set the offsets">
      <FormBody
        form={form}
        action="Set offsets"
        refusal={refusalOf("services:write") ?? groupRefusal(group)}
        send={async ({ topic, time }) => {
          const body = { topic, to: positionOf(position, time) };
          await account.value.client.consumerGroups.reset(group.service_id, group.name, body);
          showToast("good", "The offsets are set");
          reload();
        }}
      >
        <p class="quiet">The group consumes from there on, in all partitions of the topic.</p>
        <div class="halves">
          <SelectField
            label="Topic"
            {...form.field("topic")}
            options={topics.map((topic) => [topic, topic] as const)}
          />
          <SelectField
            label="Position"
            {...form.field("position", "to")}
            options={[
              ["earliest", "The first record"],
              ["latest", "The next new record"],
              ["time", "The first record of a time"],
            ]}
          />
          {position === "time" && <TextField label="Time" type="datetime-local" {...form.field("time")} />}
        </div>
      </FormBody>
    </Card>
  );
}
