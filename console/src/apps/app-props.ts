import type { App } from "@holdfast/sdk/responses.ts";

/** Properties of a tab: the newest state of the app. */
export interface AppProps {
  readonly app: App;
  readonly reload: () => void;
}
