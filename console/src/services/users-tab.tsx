import { useState } from "preact/hooks";
import { ApiError } from "@holdfast/sdk/errors.ts";
import type { Database, DatabasePassword, DatabaseUser, UserRole } from "@holdfast/sdk/responses.ts";
import { bytesText } from "../format.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Notice } from "../parts/notice.tsx";
import { Age, Badge, Card, Secret } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import type { TabProps } from "./tab-props.ts";

const roles: readonly (readonly [UserRole, string])[] = [
  ["readwrite", "Reads and writes"],
  ["readonly", "Reads"],
  ["admin", "Administrator"],
];

/** The users of the engine with their passwords, and its databases, if it has databases. */
export function UsersTab({ service: { id } }: TabProps) {
  const { databaseUsers, databases } = account.value.client;
  const options = { service: id, pollIntervalMs: 15_000 };
  const users = useLive<readonly DatabaseUser[]>(
    `users ${id}`,
    (signal) => databaseUsers.list(id, { signal }).toArray(),
    options,
  );
  const stored = useLive<readonly Database[]>(
    `databases ${id}`,
    (signal) => databases.list(id, { signal }).toArray(),
    options,
  );
  const [reset, setReset] = useState<DatabasePassword | undefined>();
  const reveal = async (username: string) => (await databaseUsers.revealPassword(id, username)).password;
  const [writes, secrets] = [refusalOf("services:write"), refusalOf("services:secrets")];
  return (
    <>
      {reset !== undefined && (
        <Notice tone="good">
          <p>The new password of {reset.username}. Give it to the programs that connect as this user.</p>
          <Secret key={reset.username} load={async () => reset.password} label="the new password" />
        </Notice>
      )}
      <LiveTable
        title="Users"
        live={users}
        keyOf={({ username }) => username}
        icon="people"
        empty="No users"
        columns={[
          ["Name", ({ username }) => <b>{username}</b>],
          ["Role", ({ role }) => roles.find(([each]) => each === role)?.[1] ?? role],
          ["Created", ({ created_at: time }) => <Age time={time} />],
          [
            "Password",
            ({ username, managed }) =>
              managed && secrets !== undefined ? (
                <i class="quiet small">{secrets}</i>
              ) : managed ? (
                <Secret load={() => reveal(username)} label={`the password of ${username}`} />
              ) : (
                <i class="quiet">own</i>
              ),
          ],
          [
            "",
            ({ username }) => (
              <span class="row end">
                <DestroyButton
                  text="Reset password"
                  refusal={secrets}
                  title="Reset the password"
                  name={username}
                  action="Reset password"
                  destroy={async () => setReset(await databaseUsers.resetPassword(id, username))}
                >
                  <p>Programs with the former password cannot connect again. Open connections stay.</p>
                </DestroyButton>
                <DestroyButton
                  text="Delete"
                  refusal={writes}
                  title="Delete the user"
                  name={username}
                  action="Delete user"
                  destroy={() => databaseUsers.delete(id, username).then(users.reload)}
                >
                  <p>Its sessions are terminated, and it cannot connect again. Its tables pass to the default user.</p>
                </DestroyButton>
              </span>
            ),
          ],
        ]}
      />
      <NewUser serviceId={id} reload={users.reload} />
      {isUnsupported(stored.error) ? null : (
        <>
          <LiveTable
            title="Databases"
            live={stored}
            keyOf={({ name }) => name}
            icon="database"
            empty="No databases"
            columns={[
              ["Name", ({ name }) => <b>{name}</b>],
              ["Owner", ({ owner }) => owner],
              ["Size", ({ size_bytes: size }) => bytesText(size)],
              ["State", ({ state }) => <Badge tone={state === "ready" ? "good" : "warn"}>{state}</Badge>],
              [
                "",
                ({ name }) => (
                  <DestroyButton
                    text="Delete"
                    refusal={writes}
                    title="Delete the database"
                    name={name}
                    action="Delete database"
                    destroy={() => databases.delete(id, name).then(stored.reload)}
                  >
                    <p>
                      The database is dropped with all of its data, and its connections end. Only a backup of the
                      service has the data afterwards.
                    </p>
                  </DestroyButton>
                ),
              ],
            ]}
          />
          <NewDatabase serviceId={id} owners={users.data ?? []} reload={stored.reload} />
        </>
      )}
    </>
  );
}

/** True for the error of an engine that has no such objects. */
function isUnsupported(error: unknown): boolean {
  return error instanceof ApiError && error.code === "not_supported";
}

function NewUser({ serviceId, reload }: { readonly serviceId: string; readonly reload: () => void }) {
  const form = useForm<{ username: string; role: UserRole }>({ username: "", role: "readwrite" });
  return (
    <Card title="Add a user">
      <FormBody
        form={form}
        action="Add user"
        icon="plus"
        refusal={refusalOf("services:write")}
        send={async (body, idempotencyKey) => {
          await account.value.client.databaseUsers.create(serviceId, body, { idempotencyKey });
          form.set("username", "");
          reload();
        }}
      >
        <div class="halves">
          <TextField label="User name" {...form.field("username")} autocomplete="off" />
          <SelectField label="Role" {...form.field("role")} options={roles} />
        </div>
      </FormBody>
    </Card>
  );
}

interface NewDatabaseProps {
  readonly serviceId: string;
  readonly owners: readonly DatabaseUser[];
  readonly reload: () => void;
}

function NewDatabase({ serviceId, owners, reload }: NewDatabaseProps) {
  const form = useForm({ name: "", owner: "" });
  return (
    <Card title="Add a database">
      <FormBody
        form={form}
        action="Add database"
        icon="plus"
        refusal={refusalOf("services:write")}
        send={async ({ name, owner }, idempotencyKey) => {
          const choice = owner === "" ? {} : { owner };
          await account.value.client.databases.create(serviceId, name, { ...choice, idempotencyKey });
          form.set("name", "");
          reload();
        }}
      >
        <div class="halves">
          <TextField label="Name of the database" {...form.field("name")} autocomplete="off" />
          <SelectField
            label="Owner"
            {...form.field("owner")}
            options={[["", "The default user"], ...owners.map(({ username }) => [username, username] as const)]}
          />
        </div>
      </FormBody>
    </Card>
  );
}
