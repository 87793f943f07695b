import type { App, HostedApp } from "@holdfast/sdk/responses.ts";

/** Properties of a tab: the newest state of the app. */
export interface AppProps {
  readonly app: App;
  readonly reload: () => void;
}

/** Properties of a tab of an app that runs on machines of the platform. */
export interface HostedAppProps extends AppProps {
  readonly hosted: HostedApp;
}
