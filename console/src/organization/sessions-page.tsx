import type { Session } from "@holdfast/sdk/responses.ts";
import { LiveTable } from "../live/live-table.tsx";
import { useLive } from "../live/use-live.ts";
import { Button } from "../parts/button.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Age, Badge, PageHead } from "../parts/parts.tsx";
import { useAction } from "../parts/use-action.ts";
import { account, signOut } from "../session/account.ts";
import { browserName } from "./browser-name.ts";
import { PasswordCard } from "./password-card.tsx";

/** The user's sessions in browsers. */
export function SessionsPage() {
  const action = useAction();
  const { sessions } = account.value.client;
  const live = useLive<readonly Session[]>("sessions", (signal) => sessions.list({ signal }).toArray());
  const end = (id: string) =>
    action.run(async () => {
      await sessions.delete(id);
      live.reload();
    });
  return (
    <>
      <PageHead
        title="Sessions"
        about="Browsers in which you are signed in, and your password"
        actions={
          <Button busy={action.isBusy} onClick={() => action.run(() => signOut("all"))}>
            Sign out everywhere
          </Button>
        }
      />
      <ErrorNotice error={action.error} />
      <LiveTable
        title="Your sessions"
        live={live}
        keyOf={({ id }) => id}
        icon="list"
        empty="No sessions"
        columns={[
          ["Browser", ({ user_agent: browser }) => <span title={browser}>{browserName(browser)}</span>],
          ["Signed in", ({ created_at: time }) => <Age time={time} />],
          ["From", ({ created_from: address }) => <span class="mono small">{address}</span>],
          ["Last use", ({ last_used_at: time, created_at: created }) => <Age time={time ?? created} />],
          [
            "",
            ({ id, current }) =>
              current ? (
                <Badge tone="good">this one</Badge>
              ) : (
                <Button kind="plain" busy={action.isBusy} onClick={() => end(id)}>
                  End
                </Button>
              ),
          ],
        ]}
      />
      <PasswordCard />
    </>
  );
}
