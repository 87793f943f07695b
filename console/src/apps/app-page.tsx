import type { ComponentChild } from "preact";
import type { App } from "@holdfast/sdk/responses.ts";
import { LivePage } from "../live/live-page.tsx";
import { useLive } from "../live/use-live.ts";
import { Empty } from "../parts/notice.tsx";
import { Badge } from "../parts/parts.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { hrefOf } from "../router/location.ts";
import { account } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import type { AppProps } from "./app-props.ts";
import { AppOverview } from "./app-overview.tsx";
import { ClientsTab } from "./clients-tab.tsx";
import { SignInTab } from "./sign-in-tab.tsx";
import { AppUsersTab } from "./app-users-tab.tsx";

// biome-ignore format: a table, aligned so that it reads as one
const tabs: readonly { readonly name: string; readonly title: string; readonly Tab: (props: AppProps) => ComponentChild }[] = [
  { name: "overview", title: "Overview",          Tab: AppOverview },
  { name: "sign-in",  title: "Sign-in",           Tab: SignInTab },
  { name: "clients",  title: "Clients",           Tab: ClientsTab },
  { name: "users",    title: "Users and sign-ins", Tab: AppUsersTab },
];

/** One app: its databases, and the issuer, clients and users of its sign-in. */
export function AppPage({ id, tab = "overview" }: { readonly id: string; readonly tab: string | undefined }) {
  const live = useLive<App>(`app ${id}`, (signal) => account.value.client.apps.get(id, { signal }), {
    pollIntervalMs: 15_000,
  });
  const current = tabs.find(({ name }) => name === tab);
  return (
    <LivePage
      live={live}
      kind="app"
      icon="door"
      crumbs={<a href={hrefOf("apps")}>Apps and sign-in</a>}
      title={({ name }) => name}
      beside={({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>}
    >
      {(app) => (
        <>
          <Tabs label="Parts of the app" current={tab} path={["apps", id]} tabs={tabs} />
          {current === undefined ? (
            <Empty icon="search" title="There is no such part of an app" />
          ) : (
            <div class="stack" data-gap="l" key={tab}>
              <current.Tab app={app} reload={live.reload} />
            </div>
          )}
        </>
      )}
    </LivePage>
  );
}
