import type { AuthEvent, AuthUser } from "@holdfast/sdk/responses.ts";
import { eventTitle } from "../events/event-view.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { DestroyButton } from "../parts/destroy-button.tsx";
import { TextField } from "../parts/field.tsx";
import { FormBody } from "../parts/form-body.tsx";
import { Age, Badge, Card } from "../parts/parts.tsx";
import { useForm } from "../parts/use-form.ts";
import { currentAddress, setQuery } from "../router/location.ts";
import { account, refusalOf } from "../session/account.ts";
import type { AppProps } from "./app-props.ts";

const maxEntries = 100;

/** Users of the app, by mail address, and the newest events of its sign-in. */
export function AppUsersTab({ app: { id } }: AppProps) {
  const { auth } = account.value.client;
  const email = currentAddress.value.query.get("email") ?? "";
  const users = useLive<readonly AuthUser[]>(`users of ${id} ${email}`, async (signal) => {
    const list = auth.users(id, email === "" ? {} : { email }, { signal, limit: maxEntries });
    for await (const { entries } of list.pages()) return entries;
    return [];
  });
  const events = useLive<readonly AuthEvent[]>(
    `sign-ins of ${id}`,
    async (signal) => {
      for await (const { entries } of auth.events(id, { signal, limit: maxEntries }).pages()) return entries;
      return [];
    },
    { pollIntervalMs: 15_000 },
  );
  return (
    <>
      <TextField
        label="Find by mail address"
        type="search"
        value={email}
        onInput={(value) => setQuery({ email: value })}
        autocomplete="off"
      />
      <LiveTable
        title="Users"
        live={users}
        keyOf={({ id: user }) => user}
        icon="people"
        empty={email === "" ? "No users yet" : "No user has this address"}
        columns={[
          ["Mail address", ({ email: address }) => <b>{address}</b>],
          [
            "Verified",
            ({ email_verified: isVerified }) => (
              <Badge tone={isVerified ? "good" : "none"}>{isVerified ? "verified" : "not yet"}</Badge>
            ),
          ],
          ["Created", ({ created_at: time }) => <Age time={time} />],
          ["Last sign-in", ({ last_sign_in_at: time }) => <Age time={time} />],
          [
            "",
            (user) => (
              <DestroyButton
                text="Erase"
                refusal={refusalOf("apps:data")}
                title="Erase the user"
                name={user.email}
                action="Erase user"
                destroy={() => auth.deleteUser(id, user.id).then(users.reload)}
              >
                <p>The user, all sessions and all identities are removed. Events stay, without user and address.</p>
              </DestroyButton>
            ),
          ],
        ]}
      />
      <NewUser appId={id} reload={users.reload} />
      <LiveTable
        title="Sign-ins"
        live={events}
        keyOf={({ id: event }) => event}
        icon="clock"
        empty="No sign-in yet"
        columns={[
          ["Time", ({ occurred_at: time }) => <Age time={time} />],
          ["Event", ({ type }) => <b>{eventTitle(type)}</b>],
          ["User", ({ user_id: user }) => <span class="mono small">{user}</span>],
          ["Address", ({ ip }) => <span class="mono small">{ip}</span>],
        ]}
      />
    </>
  );
}

function NewUser({ appId, reload }: { readonly appId: string; readonly reload: () => void }) {
  const form = useForm({ email: "" });
  return (
    <Card title="Add a user">
      <FormBody
        form={form}
        action="Add user"
        icon="plus"
        refusal={refusalOf("apps:data")}
        send={async ({ email }, idempotencyKey) => {
          await account.value.client.auth.createUser(appId, email, { idempotencyKey });
          form.set("email", "");
          reload();
        }}
      >
        <TextField label="Mail address" {...form.field("email")} autocomplete="off" />
      </FormBody>
    </Card>
  );
}
