import type { Client } from "pg";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import type { Rest } from "@holdfast/testing/api/rest.ts";
import type { RestResponse } from "@holdfast/testing/api/rest-response.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/** Enables cases for which neither lane has time. */
export const isExhaustive: boolean = process.env["HOLDFAST_TEST_QUEUES"] === "all";

/** One PostgreSQL service with queues, which the cases of this folder share: a start of a platform is expensive. */
export interface QueuesUnderTest {
  readonly platform: Platform;
  readonly services: Services;
  readonly orders: RunningService;
  /** Path of the queues, or below them. */
  path(rest?: string): string;
  connect(database?: string): Promise<Client>;
  cli(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }>;
  /** Creates a queue and waits until it accepts messages. */
  create(name: string, settings?: object): Promise<void>;
  /** Enqueues these payloads in one request; returns its response with any status. */
  post(
    queue: string,
    payloads: readonly unknown[],
    headers?: Record<string, string>,
  ): Promise<RestResponse<TaskIdJson>>;
  /** Enqueues these payloads in one request that must succeed; returns the id of the task. */
  enqueue(queue: string, payloads: readonly unknown[], headers?: Record<string, string>): Promise<string>;
  /** Result of a task, once it has ended. */
  resultOf(path: string): Promise<Readonly<Record<string, unknown>> & { readonly message_ids?: number[] }>;
  claim(queue: string, body: object, headers?: Record<string, string>): Promise<readonly ClaimedJson[]>;
  /** `ack`, `nack` or `extend`. */
  settle(queue: string, verb: string, messages: readonly object[], rest?: Rest): Promise<SettledJson>;
  ack(queue: string, claimed: readonly ClaimedJson[]): Promise<SettledJson>;
  leftIn(queue: string): Promise<number>;
  start(environment?: Readonly<Record<string, string>>): Promise<void>;
  remove(): Promise<void>;
}

export interface TaskIdJson {
  readonly task_id: string;
}

export interface ClaimedJson {
  readonly id: number;
  readonly payload: unknown;
  readonly attempt_count: number;
  readonly receipt: string;
}

export interface SettledJson {
  readonly done: string[];
  readonly lost: string[];
}

interface TaskJson {
  readonly status: string;
  readonly result: Readonly<Record<string, unknown>> | null;
}

export function createQueuesUnderTest(): QueuesUnderTest {
  let platform: Platform | undefined;
  let services: Services | undefined;
  let orders: RunningService | undefined;
  const fixture: QueuesUnderTest = {
    get platform() {
      if (platform === undefined) throw new Error("the platform was not started");
      return platform;
    },
    get services() {
      if (services === undefined) throw new Error("the platform was not started");
      return services;
    },
    get orders() {
      if (orders === undefined) throw new Error("the service was not created");
      return orders;
    },
    path: (rest = "") => `/managed-services/${fixture.orders.service.id}/queues${rest}`,
    connect: (database = fixture.orders.connection.database) =>
      openPostgresql(
        fixture.platform,
        { ...fixture.orders.connection, database },
        { password: fixture.orders.password },
      ),
    cli(...args) {
      const line = createCommandLine({ HOLDFAST_DATA: fixture.platform.directory });
      return line.runHere(args).finally(() => line.remove());
    },
    async create(name, settings = {}) {
      expectStatus(await fixture.platform.rest.post(fixture.path(), { name, ...settings }), 201);
      const isActive = async () =>
        (await fixture.platform.rest.get(fixture.path(`/${name}`))).json["status"] === "Active";
      await waitUntil(`the queue ${name} is active`, isActive);
    },
    post(queue, payloads, headers = {}) {
      const messages = payloads.map((payload) => ({ payload }));
      return fixture.platform.rest.post<TaskIdJson>(fixture.path(`/${queue}/messages`), { messages }, { headers });
    },
    enqueue: async (queue, payloads, headers) =>
      expectStatus(await fixture.post(queue, payloads, headers), 202).json.task_id,
    resultOf: (path) =>
      waitUntil(`${path} is over`, async () => {
        const response = await fixture.platform.rest.get<TaskJson>(path);
        if (response.status === 503) return undefined;
        return response.json.status === "completed" ? (response.json.result ?? undefined) : undefined;
      }),
    async claim(queue, body, headers = {}) {
      const path = fixture.path(`/${queue}/messages/claim`);
      const response = await fixture.platform.rest.post<{ messages: ClaimedJson[] }>(path, body, { headers });
      return expectStatus(response, 200).json.messages;
    },
    settle: async (queue, verb, messages, rest = fixture.platform.rest) =>
      expectStatus(await rest.post<SettledJson>(fixture.path(`/${queue}/messages/${verb}`), { messages }), 200).json,
    ack: (queue, claimed) =>
      fixture.settle(
        queue,
        "ack",
        claimed.map(({ receipt }) => ({ receipt })),
      ),
    async leftIn(queue) {
      const client = await fixture.connect();
      try {
        const count = "SELECT count(*)::int AS n FROM mdb_queue.messages WHERE queue_name = $1";
        return (await client.query<{ n: number }>(count, [queue])).rows[0]?.n ?? 0;
      } finally {
        await client.end();
      }
    },
    async start(environment = {}) {
      const always = { HOLDFAST_ALLOW_EGRESS: "127.0.0.0/8", HOLDFAST_SAMPLE_INTERVAL_MS: "1000" };
      platform = await startPlatform({ environment: { ...always, ...environment } });
      services = createServices(platform);
      orders = await services.createRunning("orders");
    },
    remove: async () => platform?.remove(),
  };
  return fixture;
}
