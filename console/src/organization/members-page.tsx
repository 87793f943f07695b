import { useState } from "preact/hooks";
import type { CreatedUser, Member, Role } from "@holdfast/sdk/responses.ts";
import { isNameTaken } from "./member-view.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Button } from "../parts/button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { Age, Card, Copyable, DestroyDialog, PageHead } from "../parts/parts.tsx";
import { useAction } from "../parts/use-action.ts";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";

const roles: readonly (readonly [Role, string])[] = [
  ["viewer", "Viewer: reads"],
  ["developer", "Developer: also changes services"],
  ["admin", "Admin: also members and keys"],
  ["owner", "Owner: everything"],
];

/** The members of the organization with their roles, and new people. */
export function MembersPage() {
  const { client, me } = account.value;
  const organization = me.organization_id ?? "";
  const live = useLive<readonly Member[]>(`members ${organization}`, (signal) =>
    client.members.list(organization, { signal }).toArray(),
  );
  const change = useAction();
  const setRole = (userId: string, role: string) =>
    change.run(async () => {
      await client.members.update(organization, userId, role as Role);
      live.reload();
    });
  const refusal = refusalOf("org:write");
  return (
    <>
      <PageHead title="Members" about="People of the organization and their roles" />
      <ErrorNotice error={change.error} />
      <LiveTable
        title="Members"
        live={live}
        keyOf={({ user_id: id }) => id}
        icon="people"
        empty="No members"
        columns={[
          ["Name", ({ user_id: id }) => <b>{id}</b>],
          [
            "Role",
            ({ user_id: id, role }) =>
              refusal === undefined && id !== me.id ? (
                <select
                  class="input"
                  aria-label={`Role of ${id}`}
                  value={role}
                  onInput={(event) => setRole(id, event.currentTarget.value)}
                >
                  {roles.map(([each]) => (
                    <option key={each}>{each}</option>
                  ))}
                </select>
              ) : (
                role
              ),
          ],
          ["Since", ({ created_at: time }) => <Age time={time} />],
          ["", ({ user_id: id }) => <Removal id={id} organization={organization} reload={live.reload} />],
        ]}
      />
      <NewMember organization={organization} reload={live.reload} />
    </>
  );
}

interface RemovalProps {
  readonly id: string;
  readonly organization: string;
  readonly reload: () => void;
}

function Removal({ id, organization, reload }: RemovalProps) {
  const [isAsking, setAsking] = useState(false);
  const action = useAction();
  const remove = () =>
    action.run(async () => {
      await account.value.client.members.remove(organization, id);
      setAsking(false);
      reload();
    });
  return (
    <>
      <Button kind="plain" refusal={refusalOf("org:write")} onClick={() => setAsking(true)}>
        Remove
      </Button>
      {isAsking && (
        <DestroyDialog
          title={`Remove ${id}`}
          name={id}
          action="Remove member"
          busy={action.isBusy}
          onConfirm={remove}
          onClose={() => setAsking(false)}
        >
          <p>They lose all access at once, and their tokens end. They can be added again.</p>
          <ErrorNotice error={action.error} />
        </DestroyDialog>
      )}
    </>
  );
}

function NewMember({ organization, reload }: Omit<RemovalProps, "id">) {
  const [created, setCreated] = useState<CreatedUser | undefined>();
  const form = useForm<{ username: string; role: Role }>({ username: "", role: "viewer" });
  const { users, members } = account.value.client;
  return (
    <Card title="Add a person">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          setCreated(undefined);
          form.submit(async ({ username, role }) => {
            const user = await users.create(username).catch((error: unknown) => {
              // The person exists already, and only becomes a member.
              if (isNameTaken(error)) return undefined;
              throw error;
            });
            await members.add(organization, username, role);
            setCreated(user);
            form.set("username", "");
            reload();
          });
        }}
      >
        <div class="halves">
          <TextField
            label="User name"
            value={form.values.username}
            onInput={(value) => form.set("username", value)}
            fault={form.fault("username") ?? form.fault("user_id")}
            autocomplete="off"
          />
          <SelectField
            label="Role"
            value={form.values.role}
            options={roles}
            onInput={(value) => form.set("role", value as Role)}
            fault={form.fault("role")}
          />
        </div>
        <ErrorNotice error={form.error} />
        {created && (
          <Notice tone="good">
            <p>
              Pass this token on to {created.id}. It sets the first password by <code>holdfast login --set-up</code>,
              once and within 72 hours.
            </p>
            <Copyable text={created.setup_token} label="the setup token" />
          </Notice>
        )}
        <div class="row">
          <Button type="submit" icon="plus" busy={form.isBusy} refusal={refusalOf("org:write")}>
            Add person
          </Button>
        </div>
      </form>
    </Card>
  );
}
