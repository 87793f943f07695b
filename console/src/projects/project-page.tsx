import { useState } from "preact/hooks";
import type { Deployment, Project, ProjectDrift } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { LivePage } from "../live/live-page.tsx";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Facts, Progress } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { hrefOf } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { pollMsOf, toneOf } from "../tone.ts";
import { Diff, PlanTable } from "./plan-page.tsx";

const maxDeployments = 20;

/** One project: its resources, its deployments live, and its drift. */
export function ProjectPage({ name }: { readonly name: string }) {
  const { projects } = account.value.client;
  const catalog = useCatalog();
  const live = useLive<Project>(`project ${name}`, (signal) => projects.get(name, { signal }), {
    pollIntervalMs: (data) => pollMsOf(data && [data.status]),
  });
  const deployments = useLive<readonly Deployment[]>(
    `deployments ${name}`,
    async (signal) => {
      for await (const { entries } of projects.deployments(name, { signal, limit: maxDeployments }).pages())
        return entries;
      return [];
    },
    { pollIntervalMs: (data) => pollMsOf(data?.map(({ status }) => status)) },
  );
  const [newest] = deployments.data ?? [];
  return (
    <LivePage
      live={live}
      kind="project"
      icon="layers"
      crumbs={<a href={hrefOf("projects")}>Projects</a>}
      title={(project) => project.name}
      beside={({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>}
    >
      {(project) => (
        <>
          {project.status_detail !== null && (
            <Notice tone={toneOf(project.status) === "bad" ? "bad" : "info"}>{project.status_detail}</Notice>
          )}
          {newest !== undefined && toneOf(newest.status) === "busy" && (
            <RunningDeployment
              name={name}
              deployment={newest}
              reload={() => {
                deployments.reload();
                live.reload();
              }}
            />
          )}
          <Card title="About">
            <Facts
              facts={[
                [
                  "Health",
                  <Badge key="health" tone={toneOf(project.health)}>
                    {project.health}
                  </Badge>,
                ],
                ["Cost a month", catalog && priceText(project.monthly_cost, catalog.currency)],
                ["Created", <Age key="created" time={project.created_at} />],
                ["Changed", <Age key="changed" time={project.updated_at} />],
              ]}
            />
          </Card>
          <Card title="Resources" flush>
            <Table
              title="Resources"
              entries={project.resources}
              keyOf={({ logical_name: resource }) => resource}
              columns={[
                ["Name", (resource) => <ResourceLink resource={resource} />],
                ["Kind", ({ kind }) => kind],
                ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
                ["Details", ({ status_detail: detail }) => <span class="quiet">{detail}</span>],
                [
                  "",
                  ({ logical_name: resource, managed }) =>
                    managed ? null : (
                      <ActionButton
                        kind="plain"
                        refusal={refusalOf("projects:write")}
                        run={() => projects.release(name, resource).then(live.reload)}
                        done={`${resource} no longer belongs to the project`}
                      >
                        Remove from project
                      </ActionButton>
                    ),
                ],
              ]}
            />
          </Card>
          {newest !== undefined && toneOf(newest.status) === "busy" && (
            <PlanTable plan={newest.plan} currency={catalog?.currency} />
          )}
          <LiveTable
            title="Deployments"
            live={deployments}
            keyOf={({ id }) => id}
            icon="clock"
            empty="No deployment yet"
            columns={[
              ["Started", ({ created_at: time }) => <Age time={time} />],
              ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
              ["By", ({ actor }) => actor],
              ["Resources", ({ resources }) => resources.length],
              ["Error", ({ error }) => <span class="small">{error}</span>],
            ]}
          />
          <Drift name={name} />
          <Deletion project={project} reload={live.reload} />
        </>
      )}
    </LivePage>
  );
}

function ResourceLink({
  resource: { logical_name: name, resource_id: id },
}: {
  readonly resource: Project["resources"][number];
}) {
  return id === null ? (
    <b>{name}</b>
  ) : (
    <a class="strong" href={hrefOf("services", id)}>
      {name}
    </a>
  );
}

interface RunningProps {
  readonly name: string;
  readonly deployment: Deployment;
  readonly reload: () => void;
}

function RunningDeployment({ name, deployment: { id, status, progress_pct: percent }, reload }: RunningProps) {
  return (
    <section class="card" aria-label="Deployment in progress">
      <div class="body stack" data-gap="s">
        <div class="row">
          <b>Deployment</b>
          <span class="quiet" role="status">
            {status}
          </span>
          <span class="grow" />
          <span class="quiet small number">{percent}%</span>
          <ActionButton
            refusal={refusalOf("projects:write")}
            run={() => account.value.client.projects.abort(name, id).then(reload)}
          >
            Abort
          </ActionButton>
        </div>
        <Progress percent={percent} label="Deployment" />
      </div>
    </section>
  );
}

function Drift({ name }: { readonly name: string }) {
  const [drift, setDrift] = useState<ProjectDrift | undefined>();
  return (
    <Card
      title="Drift"
      actions={
        <ActionButton
          refusal={refusalOf("projects:read")}
          run={async () => setDrift(await account.value.client.projects.drift(name))}
        >
          Compare
        </ActionButton>
      }
    >
      {drift === undefined ? (
        <p class="quiet">Differences of the resources from the last deployment.</p>
      ) : drift.resources.length === 0 ? (
        <p>Nothing differs.</p>
      ) : (
        <div class="stack">
          {drift.resources.map(({ logical_name: resource, changes }) => (
            <div class="stack" data-gap="s" key={resource}>
              <b>{resource}</b>
              <Diff changes={changes} />
            </div>
          ))}
        </div>
      )}
    </Card>
  );
}

function Deletion({
  project: { name, resources },
  reload,
}: {
  readonly project: Project;
  readonly reload: () => void;
}) {
  return (
    <DeletionCard
      kind="project"
      name={name}
      refusal={refusalOf("projects:write")}
      destroy={() => account.value.client.projects.delete(name).then(reload)}
    >
      <p>
        These resources are deleted with their data:{" "}
        {resources.map(({ logical_name: resource }) => resource).join(", ")}. Each database can be undeleted for 7 days
        from its final backup.
      </p>
    </DeletionCard>
  );
}
