import type { App, AppDeployment } from "@holdfast/sdk/responses.ts";
import { type Live, useLive } from "../live/use-live.ts";
import { account } from "../session/account.ts";

/** Interval of requests about an app: short while an operation is in progress. */
export function pollMsOfApp({ operation }: App): number {
  return operation === null ? 15_000 : 1_000;
}

/** The deployments of a hosted app, newest first. */
export function useDeployments(app: App): Live<readonly AppDeployment[]> {
  return useLive<readonly AppDeployment[]>(
    `deployments ${app.id}`,
    async (signal) => (await account.value.client.apps.deployments(app.id, { signal })).deployments,
    { service: app.id, pollIntervalMs: pollMsOfApp(app) },
  );
}
