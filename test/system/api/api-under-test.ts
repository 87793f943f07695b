import { expect } from "vitest";
import { createOrganizations } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import type { Rest } from "@holdfast/testing/api/rest.ts";
import type { ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { createServices, expectStatus, type Services } from "@holdfast/testing/platform/services.ts";

/** The API of one platform with one service, which the cases of this folder share. */
export interface ApiUnderTest {
  readonly platform: Platform;
  readonly services: Services;
  readonly service: ServiceJson;
  /** The key of another organization. */
  readonly outsider: Rest;
  /** Path of the service, or below it. */
  path(rest?: string): string;
  /** Pointers of all faults for which the request is rejected. */
  faults(body: unknown, verb?: string, at?: string): Promise<(string | null)[]>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

/** A valid request for a service. */
export const validService = {
  name: "another",
  database_type: "postgresql",
  plan_name: "tier-1",
  storage_size_gb: 1,
};

export function createApiUnderTest(): ApiUnderTest {
  let running: Pick<ApiUnderTest, "platform" | "services" | "service" | "outsider"> | undefined;
  let platform: Platform | undefined;
  const started = () => {
    if (running === undefined) throw new Error("the platform was not started");
    return running;
  };
  const fixture: ApiUnderTest = {
    get platform() {
      return started().platform;
    },
    get services() {
      return started().services;
    },
    get service() {
      return started().service;
    },
    get outsider() {
      return started().outsider;
    },
    path: (rest = "") => `/managed-services/${fixture.service.id}${rest}`,
    async faults(body, verb = "POST", at = "/managed-services") {
      const response = await fixture.platform.rest.call<ProblemJson>(verb, at, { body });
      expect(expectStatus(response, 400).json.code).toBe("invalid_request");
      return response.json.errors.map(({ pointer }) => pointer).sort();
    },
    async start() {
      platform = await startPlatform();
      const services = createServices(platform);
      const { service } = await services.createRunning("main", { tags: { team: "data", stage: "test" } });
      const organizations = createOrganizations(platform);
      const key = await organizations.createKey(await organizations.create("strangers"));
      organizations.close();
      running = { platform, services, service, outsider: platform.rest.as(key.authorization) };
    },
    async remove() {
      await platform?.remove();
    },
  };
  return fixture;
}
