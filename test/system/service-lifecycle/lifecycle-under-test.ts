import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import type { RestResponse } from "@holdfast/testing/api/rest-response.ts";
import type { OperationJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { createServices, type Services } from "@holdfast/testing/platform/services.ts";

/** One platform without a service, which the cases of this folder share. */
export interface LifecycleUnderTest {
  readonly platform: Platform;
  readonly services: Services;
  /** Requests a verb of a service. */
  post(id: string, verb: string): Promise<RestResponse<ServiceJson & ProblemJson & { operation: OperationJson }>>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

export function createLifecycleUnderTest(): LifecycleUnderTest {
  let platform: Platform | undefined;
  let services: Services | undefined;
  const fixture: LifecycleUnderTest = {
    get platform() {
      if (platform === undefined) throw new Error("the platform was not started");
      return platform;
    },
    get services() {
      return (services ??= createServices(fixture.platform));
    },
    post: (id, verb) => fixture.platform.rest.post(`/managed-services/${id}/${verb}`),
    async start() {
      platform = await startPlatform();
    },
    async remove() {
      await platform?.remove();
    },
  };
  return fixture;
}

/** Runs `run` while a process is paused, so that the process executes no change before `run` resolves. */
export async function whilePaused<T>(pid: number | undefined, run: () => Promise<T>): Promise<T> {
  if (pid === undefined) throw new Error("there is no such process");
  killImmediately(pid, "SIGSTOP");
  try {
    return await run();
  } finally {
    killImmediately(pid, "SIGCONT");
  }
}
