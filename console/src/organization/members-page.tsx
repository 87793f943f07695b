import { ApiError } from "@holdfast/sdk/errors.ts";
import { useState } from "preact/hooks";
import type { CreatedUser, Member, Role } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { ErrorNotice, Notice } from "../parts/notice.tsx";
import { Age, Card, Copyable, PageHead } from "../parts/parts.tsx";
import { useAction } from "../parts/use-action.ts";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf, setUpLink } from "../session/account.ts";

const roles: readonly (readonly [Role, string])[] = [
  ["viewer", "Viewer: reads"],
  ["developer", "Developer: also changes services"],
  ["admin", "Admin: also members and keys"],
  ["owner", "Owner: everything"],
];

/** The members of the organization with their roles, and a form that adds users. */
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
      <PageHead title="Members" about="Users of the organization and their roles" />
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
  return (
    <DestroyButton
      text="Remove"
      refusal={refusalOf("org:write")}
      title={`Remove ${id}`}
      name={id}
      action="Remove member"
      destroy={() => account.value.client.members.remove(organization, id).then(reload)}
    >
      <p>The user loses all access immediately, and their tokens become invalid. They can be added again.</p>
    </DestroyButton>
  );
}

function NewMember({ organization, reload }: Omit<RemovalProps, "id">) {
  const [created, setCreated] = useState<CreatedUser | undefined>();
  const form = useForm<{ username: string; role: Role }>({ username: "", role: "viewer" });
  const { users, members } = account.value.client;
  return (
    <Card title="Add a user">
      <FormBody
        form={form}
        action="Add user"
        icon="plus"
        refusal={refusalOf("org:write")}
        send={async ({ username, role }) => {
          setCreated(undefined);
          const user = await users.create(username).catch((error: unknown) => {
            // The user exists already, and only becomes a member.
            if (isNameTaken(error)) return undefined;
            throw error;
          });
          await members.add(organization, username, role);
          setCreated(user);
          form.set("username", "");
          reload();
        }}
      >
        <div class="halves">
          <TextField label="User name" {...form.field("username")} autocomplete="off" />
          <SelectField label="Role" {...form.field("role")} options={roles} />
        </div>
        {created && (
          <Notice tone="good">
            <p>
              Pass one of these on to {created.id}, who sets the first password once and within 72 hours: the link in a
              browser, or the token by <code>holdfast login --set-up</code>.
            </p>
            <Copyable
              text={setUpLink({ username: created.id, token: created.setup_token })}
              label="the link to set the password"
            />
            <Copyable text={created.setup_token} label="the setup token" />
          </Notice>
        )}
      </FormBody>
    </Card>
  );
}

/** True if the API refused a name because it is in use. */
function isNameTaken(error: unknown): boolean {
  return error instanceof ApiError && error.code === "name_taken";
}
