import type { Project } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ButtonLink } from "../parts/button.tsx";
import { Age, Badge, PageHead } from "../parts/parts.tsx";
import { hrefOf } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { pollMsOf, toneOf } from "../tone.ts";

/** Projects of the organization: resources that one document describes. */
export function ProjectsPage() {
  const catalog = useCatalog();
  const live = useLive<readonly Project[]>(
    "projects",
    (signal) => account.value.client.projects.list({ signal }).toArray(),
    { pollIntervalMs: (data) => pollMsOf(data?.map(({ status }) => status)) },
  );
  const create = (
    <ButtonLink kind="primary" icon="plus" href={hrefOf("projects", "new")} refusal={refusalOf("projects:read")}>
      Plan a project
    </ButtonLink>
  );
  const isEmpty = live.data?.length === 0;
  return (
    <>
      <PageHead
        title="Projects"
        about="Resources and their dependencies, described in one document"
        actions={isEmpty ? undefined : create}
      />
      <LiveTable
        title="Projects"
        live={live}
        keyOf={({ id }) => id}
        icon="layers"
        empty="Deploy your first project"
        columns={[
          [
            "Name",
            ({ name }) => (
              <a class="strong" href={hrefOf("projects", name)}>
                {name}
              </a>
            ),
          ],
          ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
          ["Health", ({ health }) => <Badge tone={toneOf(health)}>{health}</Badge>],
          ["Resources", ({ resources }) => resources.length],
          ["Cost a month", ({ monthly_cost: cost }) => catalog && priceText(cost, catalog.currency)],
          ["Changed", ({ updated_at: time }) => <Age time={time} />],
        ]}
      >
        <p class="quiet">Describe your databases once. The plan shows each change and its cost before it is made.</p>
        {create}
      </LiveTable>
    </>
  );
}
