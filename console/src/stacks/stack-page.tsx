import { useState } from "preact/hooks";
import type { Stack, StackMigration, UpgradePreview } from "@holdfast/sdk/responses.ts";
import { priceText } from "../format.ts";
import { LivePage } from "../live/live-page.tsx";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { ActionButton } from "../parts/action-button.tsx";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Facts } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { hrefOf, openPage } from "../router/location.ts";
import { useCatalog } from "../services/use-catalog.ts";
import { account, refusalOf } from "../session/account.ts";
import { pollMsOf, toneOf } from "../tone.ts";

/** One stack: its resources, the preview of an upgrade with its cost, and its migrations. */
export function StackPage({ id }: { readonly id: string }) {
  const { stacks } = account.value.client;
  const catalog = useCatalog();
  const currency = catalog?.currency ?? "USD";
  const live = useLive<Stack>(`stack ${id}`, (signal) => stacks.get(id, { signal }), {
    pollIntervalMs: (data) => pollMsOf(data && [data.status]),
  });
  const migrations = useLive<readonly StackMigration[]>(
    `migrations ${id}`,
    (signal) => stacks.migrations(id, { signal }).toArray(),
    { pollIntervalMs: (data) => pollMsOf(data?.map(({ status }) => status)) },
  );
  return (
    <LivePage
      live={live}
      kind="stack"
      icon="stack"
      crumbs={<a href={hrefOf("stacks")}>Stacks</a>}
      title={({ name }) => name}
      beside={({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>}
    >
      {(stack) => (
        <>
          {stack.status_detail !== null && (
            <Notice tone={toneOf(stack.status) === "bad" ? "bad" : "info"}>{stack.status_detail}</Notice>
          )}
          <Card title="About">
            <Facts
              facts={[
                ["Template", `${stack.template_name} ${stack.template_version}`],
                ["Cost a month", priceText(stack.monthly_cost, currency)],
                ["Created", <Age key="created" time={stack.created_at} />],
                ["Address", stack.endpoint_url ?? "none"],
              ]}
            />
          </Card>
          <Card title="Resources" flush>
            <Table
              title="Resources"
              entries={stack.resources}
              keyOf={({ symbolic_name: name }) => name}
              columns={[
                [
                  "Name",
                  ({ symbolic_name: name, service_id: service }) =>
                    service === null ? (
                      <b>{name}</b>
                    ) : (
                      <a class="strong" href={hrefOf("services", service)}>
                        {name}
                      </a>
                    ),
                ],
                ["Kind", ({ kind }) => kind],
                ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
                ["Details", ({ status_detail: detail }) => <span class="quiet">{detail}</span>],
              ]}
            />
          </Card>
          <Upgrade
            id={id}
            currency={currency}
            reload={() => {
              migrations.reload();
              live.reload();
            }}
          />
          <LiveTable
            title="Upgrades"
            live={migrations}
            keyOf={({ id: migration }) => migration ?? ""}
            icon="clock"
            empty="No upgrade yet"
            columns={[
              ["Started", ({ started_at: time }) => <Age time={time} />],
              ["Versions", (migration) => `${migration.from_version} -> ${migration.to_version}`],
              ["State", ({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>],
              ["Details", ({ status_detail: detail }) => <span class="quiet">{detail}</span>],
            ]}
          />
          <DeletionCard
            kind="stack"
            name={stack.name}
            refusal={refusalOf("stacks:write")}
            destroy={async () => {
              await stacks.delete(id);
              openPage(hrefOf("stacks"));
            }}
          >
            <p>
              These resources are deleted with their data:{" "}
              {stack.resources.map(({ symbolic_name: name }) => name).join(", ")}. Each database can be undeleted for 7
              days from its final backup.
            </p>
          </DeletionCard>
        </>
      )}
    </LivePage>
  );
}

interface UpgradeProps {
  readonly id: string;
  readonly currency: string;
  readonly reload: () => void;
}

function Upgrade({ id, currency, reload }: UpgradeProps) {
  const { stacks } = account.value.client;
  const [preview, setPreview] = useState<UpgradePreview | undefined>();
  const show = async () => setPreview(await stacks.previewUpgrade(id));
  const apply = async (cost: number) => {
    await stacks.upgrade(id, cost);
    setPreview(undefined);
    reload();
  };
  const isNewest = preview?.from_version === preview?.to_version;
  return (
    <Card
      title="Upgrade"
      actions={
        <ActionButton refusal={refusalOf("stacks:read")} run={show}>
          Preview
        </ActionButton>
      }
    >
      {preview === undefined ? (
        <p class="quiet">The newest version of the template, its changes and its cost.</p>
      ) : isNewest ? (
        <p>The stack has the newest version, {preview.to_version}.</p>
      ) : (
        <div class="stack">
          <p>
            {preview.from_version} {"->"} {preview.to_version}
          </p>
          {preview.blocked_reasons.map((reason) => (
            <Notice key={reason} tone="warn">
              {reason}
            </Notice>
          ))}
          <div class="scroll" tabIndex={0} role="group" aria-label="Changes">
            <Table
              title="Changes"
              entries={preview.changes}
              keyOf={({ symbolic_name: name }) => name}
              columns={[
                ["Resource", ({ symbolic_name: name }) => <b>{name}</b>],
                ["Change", ({ change }) => <Badge tone={toneOf(change)}>{change.replaceAll("_", " ")}</Badge>],
                ["Action", ({ action }) => action],
                ["Reason", ({ reason }) => <span class="quiet">{reason}</span>],
              ]}
            />
          </div>
          <p class="price">
            {priceText(preview.current_monthly_cost, currency)} {"->"} {priceText(preview.new_monthly_cost, currency)} a
            month
          </p>
          <div class="row">
            <ActionButton
              kind="primary"
              refusal={refusalOf("stacks:write") ?? (preview.blocked ? "The upgrade is blocked." : undefined)}
              run={() => apply(preview.new_monthly_cost)}
              done="The upgrade has started"
            >
              Upgrade at this cost
            </ActionButton>
          </div>
        </div>
      )}
    </Card>
  );
}
