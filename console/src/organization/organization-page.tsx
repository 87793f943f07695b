import type { Organization } from "@holdfast/sdk/responses.ts";
import { LivePage } from "../live/live-page.tsx";
import { useLive } from "../live/use-live.ts";
import { DeletionCard } from "../parts/destroy-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Badge, Card, Copyable, Facts, Progress } from "../parts/parts.tsx";
import { Table } from "../parts/table.tsx";
import { showToast } from "../parts/toasts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, chooseOrganization, reloadSession, refusalOf } from "../session/account.ts";
import { quotaNotice, quotaRows } from "./quota-view.ts";

/** The organization: its name, its quotas and their usage, and its deletion. */
export function OrganizationPage() {
  const { client, me } = account.value;
  const id = me.organization_id ?? "";
  const live = useLive<Organization>(`organization ${id}`, (signal) => client.organizations.get(id, { signal }), {
    pollIntervalMs: 15_000,
  });
  return (
    <LivePage live={live} kind="organization" icon="people" crumbs={undefined} title={({ name }) => name}>
      {(organization) => (
        <>
          <Card title="About">
            <Facts
              facts={[
                ["Your role", me.role ?? "none"],
                ["Created", <Age key="created" time={organization.created_at} />],
              ]}
            />
          </Card>
          <Quotas organization={organization} />
          <Name organization={organization} reload={live.reload} />
          <NewOrganization />
          <Card title="Identifier">
            <Copyable text={organization.id} label="id of the organization" />
          </Card>
          <DeletionCard
            kind="organization"
            name={organization.name}
            refusal={refusalOf("organization:delete")}
            destroy={async () => {
              await client.organizations.delete(id);
              await reloadSession();
            }}
          >
            <p>
              Its keys, tokens, webhooks and memberships are deleted, and cannot be restored. It is refused while it has
              services.
            </p>
          </DeletionCard>
        </>
      )}
    </LivePage>
  );
}

function Quotas({ organization: { quotas } }: { readonly organization: Organization }) {
  return (
    <Card title="Quotas" flush actions={<span class="quiet small">An operator of the installation changes them</span>}>
      <Table
        title="Quotas"
        entries={quotaRows(quotas)}
        keyOf={({ name }) => name}
        columns={[
          ["Quota", ({ title }) => <b>{title}</b>],
          ["Used", ({ text }) => <span class="number">{text}</span>],
          ["Share", ({ title, percent }) => <Progress percent={percent} label={`Used share of ${title}`} />],
          [
            "State",
            (row) => {
              const notice = quotaNotice(row);
              return notice === undefined ? null : <Badge tone={row.tone}>{notice}</Badge>;
            },
          ],
        ]}
      />
    </Card>
  );
}

function Name({ organization, reload }: { readonly organization: Organization; readonly reload: () => void }) {
  const form = useForm({ name: organization.name });
  return (
    <Card title="Name">
      <FormBody
        form={form}
        action="Save"
        kind="primary"
        refusal={refusalOf("org:write")}
        send={async ({ name }) => {
          await account.value.client.organizations.rename(organization.id, name);
          showToast("good", "Saved");
          reload();
          await reloadSession();
        }}
      >
        <TextField label="Name of the organization" {...form.field("name")} autocomplete="off" />
      </FormBody>
    </Card>
  );
}

function NewOrganization() {
  const form = useForm({ name: "" });
  return (
    <Card title="Create another organization">
      <FormBody
        form={form}
        action="Create organization"
        icon="plus"
        send={async ({ name }, idempotencyKey) => {
          const { id } = await account.value.client.organizations.create(name, { idempotencyKey });
          await reloadSession();
          await chooseOrganization(id);
        }}
      >
        <TextField
          label="Name of the new organization"
          help="You own it; it has services, members and quotas apart from these"
          {...form.field("name")}
          autocomplete="off"
        />
      </FormBody>
    </Card>
  );
}
