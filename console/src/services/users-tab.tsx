import { useState } from "preact/hooks";
import type { Database, DatabaseUser, UserRole } from "@holdfast/sdk/responses.ts";
import { bytesText } from "../format.ts";
import { useLive } from "../live/use-live.ts";
import { Button } from "../parts/button.tsx";
import { SelectField, TextField } from "../parts/field.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Age, Badge, Card, DestroyDialog, Loading, Secret } from "../parts/parts.tsx";
import { useAction } from "../parts/use-action.ts";
import { useForm } from "../parts/use-form.ts";
import { account, refusalOf } from "../session/account.ts";
import type { TabProps } from "./tab-props.ts";

const roles: readonly (readonly [UserRole, string])[] = [
  ["readwrite", "Reads and writes"],
  ["readonly", "Reads"],
  ["admin", "Administrator"],
];

/** The users of the engine with their passwords, and its databases. */
export function UsersTab({ service }: TabProps) {
  const users = useLive<readonly DatabaseUser[]>(
    `users ${service.id}`,
    (signal) => account.value.client.databaseUsers.list(service.id, { signal }).toArray(),
    { service: service.id, everyMs: 15_000 },
  );
  const databases = useLive<readonly Database[]>(
    `databases ${service.id}`,
    (signal) => account.value.client.databases.list(service.id, { signal }).toArray(),
    { service: service.id, everyMs: 15_000 },
  );
  return (
    <>
      <Card title="Users" flush>
        {users.data === undefined ? (
          <div class="body">
            {users.error === undefined ? <Loading /> : <ErrorNotice error={users.error} onRetry={users.reload} />}
          </div>
        ) : (
          <table class="table">
            <caption class="visually-hidden">Users</caption>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Role</th>
                <th scope="col">Created</th>
                <th scope="col">Password</th>
                <th scope="col">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {users.data.map((user) => (
                <UserRow key={user.username} serviceId={service.id} user={user} reload={users.reload} />
              ))}
            </tbody>
          </table>
        )}
      </Card>
      <NewUser serviceId={service.id} reload={users.reload} />
      <Card title="Databases" flush>
        {databases.data === undefined ? (
          <div class="body">
            {databases.error === undefined ? (
              <Loading />
            ) : (
              <ErrorNotice error={databases.error} onRetry={databases.reload} />
            )}
          </div>
        ) : (
          <table class="table">
            <caption class="visually-hidden">Databases</caption>
            <thead>
              <tr>
                <th scope="col">Name</th>
                <th scope="col">Owner</th>
                <th scope="col">Size</th>
                <th scope="col">State</th>
              </tr>
            </thead>
            <tbody>
              {databases.data.map(({ name, owner, size_bytes: size, state }) => (
                <tr key={name}>
                  <td>
                    <b>{name}</b>
                  </td>
                  <td>{owner}</td>
                  <td class="number">{bytesText(size)}</td>
                  <td>
                    <Badge tone={state === "ready" ? "good" : "warn"}>{state}</Badge>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Card>
      <NewDatabase serviceId={service.id} owners={users.data ?? []} reload={databases.reload} />
    </>
  );
}

interface RowProps {
  readonly serviceId: string;
  readonly user: DatabaseUser;
  readonly reload: () => void;
}

function UserRow({ serviceId, user, reload }: RowProps) {
  const [isAsking, setAsking] = useState(false);
  const action = useAction();
  const { databaseUsers } = account.value.client;
  const reveal = async () => (await databaseUsers.revealPassword(serviceId, user.username)).password;
  const remove = () =>
    action.run(async () => {
      await databaseUsers.delete(serviceId, user.username);
      setAsking(false);
      reload();
    });
  return (
    <tr>
      <td>
        <b>{user.username}</b>
      </td>
      <td>{user.role}</td>
      <td>
        <Age time={user.created_at} />
      </td>
      <td>
        {user.managed ? <Secret load={reveal} label={`the password of ${user.username}`} /> : <i class="quiet">own</i>}
      </td>
      <td class="actions">
        <Button kind="plain" refusal={refusalOf("services:write")} onClick={() => setAsking(true)}>
          Delete
        </Button>
        {isAsking && (
          <DestroyDialog
            title="Delete the user"
            name={user.username}
            action="Delete user"
            busy={action.isBusy}
            onConfirm={remove}
            onClose={() => setAsking(false)}
          >
            <p>Its sessions end, and it cannot connect again. Its tables pass to the default user.</p>
            <ErrorNotice error={action.error} />
          </DestroyDialog>
        )}
      </td>
    </tr>
  );
}

function NewUser({ serviceId, reload }: { readonly serviceId: string; readonly reload: () => void }) {
  const form = useForm<{ username: string; role: UserRole }>({ username: "", role: "readwrite" });
  return (
    <Card title="Add a user">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          form.submit(async (body, idempotencyKey) => {
            await account.value.client.databaseUsers.create(serviceId, body, { idempotencyKey });
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
            fault={form.fault("username")}
            autocomplete="off"
          />
          <SelectField
            label="Role"
            value={form.values.role}
            options={roles}
            onInput={(value) => form.set("role", value as UserRole)}
            fault={form.fault("role")}
          />
        </div>
        <ErrorNotice error={form.error} />
        <div class="row">
          <Button type="submit" icon="plus" busy={form.isBusy} refusal={refusalOf("services:write")}>
            Add user
          </Button>
        </div>
      </form>
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
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          form.submit(async ({ name, owner }, idempotencyKey) => {
            const choice = owner === "" ? {} : { owner };
            await account.value.client.databases.create(serviceId, name, { ...choice, idempotencyKey });
            form.set("name", "");
            reload();
          });
        }}
      >
        <div class="halves">
          <TextField
            label="Name of the database"
            value={form.values.name}
            onInput={(value) => form.set("name", value)}
            fault={form.fault("name")}
            autocomplete="off"
          />
          <SelectField
            label="Owner"
            value={form.values.owner}
            options={[["", "The default user"], ...owners.map(({ username }) => [username, username] as const)]}
            onInput={(value) => form.set("owner", value)}
            fault={form.fault("owner")}
          />
        </div>
        <ErrorNotice error={form.error} />
        <div class="row">
          <Button type="submit" icon="plus" busy={form.isBusy} refusal={refusalOf("services:write")}>
            Add database
          </Button>
        </div>
      </form>
    </Card>
  );
}
