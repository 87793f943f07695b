import type { App } from "@holdfast/sdk/responses.ts";
import { LivePage } from "../live/live-page.tsx";
import { useLive } from "../live/use-live.ts";
import { OperationNotice } from "../operations/operation-notice.tsx";
import { Empty, Notice } from "../parts/notice.tsx";
import { Badge } from "../parts/parts.tsx";
import { Tabs } from "../parts/tabs.tsx";
import { hrefOf } from "../router/location.ts";
import { isOpen } from "../services/service-view.ts";
import { account } from "../session/account.ts";
import { toneOf } from "../tone.ts";
import { appTabs } from "./app-tabs.tsx";

/** One app: what the platform runs of it, its attachments and domains, and its sign-in. */
export function AppPage({ id, tab = "overview" }: { readonly id: string; readonly tab: string | undefined }) {
  const live = useLive<App>(`app ${id}`, (signal) => account.value.client.apps.get(id, { signal }), {
    pollIntervalMs: (app) => (app !== undefined && isOpen(app.operation) ? 1_000 : 15_000),
  });
  return (
    <LivePage
      live={live}
      kind="app"
      icon="door"
      crumbs={<a href={hrefOf("apps")}>Apps and sign-in</a>}
      title={({ name }) => name}
      beside={({ status }) => <Badge tone={toneOf(status)}>{status}</Badge>}
    >
      {(app) => {
        const props = { app, reload: live.reload };
        const tabs = appTabs.filter(({ render }) => render(props) !== undefined);
        const current = tabs.find(({ name }) => name === tab);
        return (
          <>
            <OperationNotice operation={app.operation} />
            {app.managed_by !== null && (
              <Notice>The app belongs to a {app.managed_by.kind}, which deploys, scales and deletes it.</Notice>
            )}
            <Tabs label="Parts of the app" current={tab} path={["apps", id]} tabs={tabs} />
            {current === undefined ? (
              <Empty icon="search" title="There is no such part of the app" />
            ) : (
              <div class="stack" data-gap="l" key={tab}>
                {current.render(props)}
              </div>
            )}
          </>
        );
      }}
    </LivePage>
  );
}
