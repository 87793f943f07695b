import type { PipelineDetail } from "@holdfast/sdk/responses.ts";
import { LivePage } from "../live/live-page.tsx";
import { useLive } from "../live/use-live.ts";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Copyable, Facts, Loading, Secret } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { hrefOf, openPage } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import { connectionParts, pipelineTone } from "./pipeline-view.ts";

/**
 * One pipeline: its databases, and the connections of each role. Its details have passwords, so each request for them
 * is in the audit log: they are requested again only when the list, which has none, shows a change.
 */
export function PipelinePage({ id }: { readonly id: string }) {
  const { pipelines } = account.value.client;
  const { data, error, reload } = useLive<{ readonly version: string; readonly isBusy: boolean }>(
    `pipeline ${id}`,
    async (signal) => {
      const found = (await pipelines.list({ signal }).toArray()).find((each) => each.id === id);
      return {
        version: `${found?.status} ${found?.updated_at}`,
        isBusy: found !== undefined && pipelineTone(found.status) === "busy",
      };
    },
    { pollIntervalMs: (listed) => (listed?.isBusy === true ? 2_000 : 15_000) },
  );
  if (data !== undefined) return <Details id={id} version={data.version} />;
  return error === undefined ? <Loading rows={6} /> : <ErrorNotice error={error} onRetry={reload} />;
}

interface DetailsProps {
  readonly id: string;
  /** Changes with the pipeline. */
  readonly version: string;
}

function Details({ id, version }: DetailsProps) {
  const { pipelines } = account.value.client;
  const live = useLive<PipelineDetail>(`details ${id} ${version}`, (signal) => pipelines.get(id, { signal }), {
    isStatic: true,
  });
  return (
    <LivePage
      live={live}
      kind="pipeline"
      icon="flow"
      crumbs={<a href={hrefOf("pipelines")}>Pipelines</a>}
      title={({ name }) => name}
      beside={({ status }) => <Badge tone={pipelineTone(status)}>{status}</Badge>}
    >
      {(pipeline) => (
        <>
          {pipeline.status_detail !== null && <Notice tone="warn">{pipeline.status_detail}</Notice>}
          <Card title="About">
            <Facts
              facts={[
                ["Template", pipeline.template_id],
                ["Zone", pipeline.zone],
                ["Created", <Age key="created" time={pipeline.created_at} />],
              ]}
            />
          </Card>
          <Card title="Databases" flush>
            <Table
              title="Databases"
              entries={pipeline.members}
              keyOf={({ role }) => role}
              columns={[
                [
                  "Role",
                  ({ role, service_id: service }) =>
                    service === null ? (
                      <b>{role}</b>
                    ) : (
                      <a class="strong" href={hrefOf("services", service)}>
                        {role}
                      </a>
                    ),
                ],
                ["Engine", ({ database_type: type }) => type],
                ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
                ["Details", ({ status_detail: detail }) => <span class="quiet">{detail}</span>],
              ]}
            />
          </Card>
          {pipeline.connections.map(({ role, connections }) => (
            <Card key={role} title={`Connection of ${role}`}>
              <div class="stack">
                {connectionParts(connections).map(({ title, text, isSecret }) => (
                  <div class="stack" data-gap="s" key={title}>
                    <b>{title}</b>
                    {isSecret ? (
                      <Secret load={() => Promise.resolve(text)} label={`${title} of ${role}`} />
                    ) : (
                      <Copyable text={text} label={`${title} of ${role}`} />
                    )}
                  </div>
                ))}
              </div>
            </Card>
          ))}
          <DeletionCard
            kind="pipeline"
            name={pipeline.name}
            refusal={refusalOf("pipelines:write")}
            destroy={async () => {
              await pipelines.delete(id);
              openPage(hrefOf("pipelines"));
            }}
          >
            <p>
              These databases are deleted with their data: {pipeline.members.map(({ role }) => role).join(", ")}. Each
              can be undeleted for 7 days from its final backup.
            </p>
          </DeletionCard>
        </>
      )}
    </LivePage>
  );
}
