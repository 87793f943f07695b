import { ApiError } from "@holdfast/sdk/errors.ts";
import { useState } from "preact/hooks";
import type { CreatedUser, Member, Role } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Age, Card, PageHead } from "../parts/parts.tsx";
import { useAction } from "../parts/use-action.ts";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import { SetUpNotice } from "./set-up-notice.tsx";

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
  const [reset, setReset] = useState<CreatedUser | undefined>();
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
      {reset && <SetUpNotice user={reset} />}
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
          [
            "",
            ({ user_id: id }) => (
              <span class="row end">
                <Reset id={id} onReset={setReset} />
                <Removal id={id} organization={organization} reload={live.reload} />
              </span>
            ),
          ],
        ]}
      />
      <NewMember organization={organization} reload={live.reload} />
    </>
  );
}

interface ResetProps {
  readonly id: string;
  readonly onReset: (user: CreatedUser) => void;
}

function Reset({ id, onReset }: ResetProps) {
  const isSelf = id === account.value.me.id;
  return (
    <DestroyButton
      text="Reset password"
      refusal={refusalOf("org:write") ?? (isSelf ? "Change your password on the page of sessions." : undefined)}
      title={`Reset the password of ${id}`}
      name={id}
      action="Reset password"
      destroy={async () => onReset(await account.value.client.users.reset(id))}
    >
      <p>
        The former password is invalid immediately, and the browser sessions of the user end. You get a link for the
        next one.
      </p>
    </DestroyButton>
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
        {created && <SetUpNotice user={created} />}
      </FormBody>
    </Card>
  );
}

/** True if the API refused a name because it is in use. */
function isNameTaken(error: unknown): boolean {
  return error instanceof ApiError && error.code === "name_taken";
}
