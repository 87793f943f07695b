import type { Platform } from "../platform/platform.ts";
import { expectStatus } from "../platform/services.ts";
import { waitUntil } from "../wait-until.ts";

export interface QueueJson {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly max_attempts: number;
}

export interface MessageJson {
  readonly id: number;
  readonly payload: { readonly n: number };
  readonly state: string;
  readonly receipt: string;
}

/** Queues of one service over REST; the payloads of their messages are numbers. */
export interface ServiceQueues {
  /** Path of the service's queues, or of `rest` below it. */
  path(rest?: string): string;
  list(): Promise<QueueJson[]>;
  /** Creates a queue and waits until it accepts messages. */
  create(name: string, settings?: object): Promise<QueueJson>;
  /** Resolves once the queue accepts messages. */
  active(name: string): Promise<QueueJson>;
  /** Deletes the queue, and waits until it is absent. */
  remove(name: string): Promise<void>;
  /** Resolves once the queue is deleted. */
  deleted(name: string): Promise<void>;
  /** Enqueues messages; returns the id of the task. */
  send(name: string, numbers: readonly number[]): Promise<string>;
  claim(name: string, body: object): Promise<MessageJson[]>;
  ack(
    name: string,
    messages: readonly MessageJson[],
  ): Promise<{ status: number; json: { done: string[]; lost: string[] } }>;
  peek(name: string): Promise<MessageJson[]>;
}

const wait = { withinMs: 120_000, everyMs: 100 };

export function queuesOf({ rest }: Platform, serviceId: string): ServiceQueues {
  const path = (of = "") => `/managed-services/${serviceId}/queues${of}`;
  const fixture: ServiceQueues = {
    path,
    list: async () => expectStatus(await rest.get<{ queues: QueueJson[] }>(path()), 200).json.queues,
    async create(name, settings = {}) {
      expectStatus(await rest.post(path(), { name, ...settings }), 201);
      return fixture.active(name);
    },
    active: (name) =>
      waitUntil(
        `the queue ${name} is active`,
        async () => {
          const { status, json } = await rest.get<QueueJson>(path(`/${name}`));
          return status === 200 && json.status === "Active" ? json : undefined;
        },
        wait,
      ),
    async remove(name) {
      expectStatus(await rest.delete(path(`/${name}`)), 202);
      await fixture.deleted(name);
    },
    async deleted(name) {
      const isDeleted = async () => (await rest.get(path(`/${name}`))).status === 404;
      await waitUntil(`the queue ${name} is deleted`, isDeleted, wait);
    },
    async send(name, numbers) {
      const messages = numbers.map((n) => ({ payload: { n } }));
      return expectStatus(await rest.post<{ task_id: string }>(path(`/${name}/messages`), { messages }), 202).json
        .task_id;
    },
    claim: async (name, body) =>
      expectStatus(await rest.post<{ messages: MessageJson[] }>(path(`/${name}/messages/claim`), body), 200).json
        .messages,
    ack: (name, messages) =>
      rest.post<{ done: string[]; lost: string[] }>(path(`/${name}/messages/ack`), {
        messages: messages.map(({ receipt }) => ({ receipt })),
      }),
    peek: async (name) =>
      expectStatus(await rest.get<{ messages: MessageJson[] }>(path(`/${name}/messages`)), 200).json.messages,
  };
  return fixture;
}

/** The numbers of messages, in order. */
export function numbersOf(messages: readonly MessageJson[]): number[] {
  return messages.map(({ payload }) => payload.n).toSorted((a, b) => a - b);
}
