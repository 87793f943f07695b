import { preparedDisks, type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { testPublicNetwork } from "@holdfast/testing/network/public-network.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";

/** One PostgreSQL of one platform, which the cases of this folder share: a start of a platform is expensive. */
export interface PostgresqlUnderTest {
  readonly platform: Platform;
  readonly services: Services;
  readonly main: RunningService;
  /** Path of the service, or below it. */
  path(rest?: string): string;
  passwordOf(username: string): Promise<string>;
  /** Creates a user of the engine; returns its password. */
  createUser(username: string, role: string): Promise<string>;
  start(): Promise<void>;
  remove(): Promise<void>;
}

export function createPostgresqlUnderTest(): PostgresqlUnderTest {
  let running: Pick<PostgresqlUnderTest, "platform" | "services" | "main"> | undefined;
  let platform: Platform | undefined;
  const started = () => {
    if (running === undefined) throw new Error("the PostgreSQL was not started");
    return running;
  };
  const fixture: PostgresqlUnderTest = {
    get platform() {
      return started().platform;
    },
    get services() {
      return started().services;
    },
    get main() {
      return started().main;
    },
    path: (rest = "") => `/managed-services/${fixture.main.service.id}${rest}`,
    async passwordOf(username) {
      const path = fixture.path(`/database-users/${username}/reveal-password`);
      const response = await fixture.platform.rest.post<{ password: string }>(path);
      return expectStatus(response, 200).json.password;
    },
    async createUser(username, role) {
      expectStatus(await fixture.platform.rest.post(fixture.path("/database-users"), { username, role }), 201);
      return fixture.passwordOf(username);
    },
    async start() {
      const flags = ["--public-addresses", await testPublicNetwork()];
      platform = await startPlatform({ flags, environment: preparedDisks });
      const services = createServices(platform);
      const main = await services.createRunning("main", { tags: { team: "data" } });
      running = { platform, services, main };
    },
    async remove() {
      await platform?.remove();
    },
  };
  return fixture;
}

/** The user to connect as. */
export function login(user: string, password: string, database?: string) {
  return { user, password, ...(database === undefined ? {} : { database }) };
}
