import { expect } from "vitest";
import type { Platform } from "../platform/platform.ts";
import { expectStatus } from "../platform/services.ts";
import { waitUntil } from "../wait-until.ts";
import { type MessageJson, queuesOf } from "./service-queues.ts";

/** A queue of the service with messages in every state, and clients that continue during a test. */
export interface QueueWorkload {
  /**
   * Asserts that each message is where it was, or was acked once. An asynchronous failover may undo the last
   * acknowledged changes: `mayLoseLast` admits that the last messages are missing, and that the last acked ones are
   * back, and no others.
   */
  check(rules?: { readonly mayLoseLast?: boolean }): Promise<void>;
}

const patient = { withinMs: 170_000, everyMs: 100 };

/** Creates a queue, and sends and processes messages until `check`. */
export async function startQueueWorkload(platform: Platform, serviceId: string, name: string): Promise<QueueWorkload> {
  const { rest } = platform;
  const queues = queuesOf(platform, serviceId);
  const path = (of: string) => queues.path(`/${name}${of}`);
  await queues.create(name, { max_attempts: 100 });

  const send = (n: number) =>
    waitUntil(
      `message ${n} is taken`,
      async () => {
        const headers = { "idempotency-key": `${name}-${n}` };
        const response = await rest
          .post(path("/messages"), { messages: [{ payload: { n } }] }, { headers })
          .catch(() => undefined);
        return response?.status === 202;
      },
      patient,
    );
  /** Claimed messages; undefined without a response. */
  const claim = async (body: object): Promise<readonly MessageJson[] | undefined> => {
    const response = await rest.post<{ messages: MessageJson[] }>(path("/messages/claim"), body).catch(() => undefined);
    return response?.status === 200 ? response.json.messages : undefined;
  };

  for (const n of [0, 1, 2]) await send(n);
  const claimed = await queues.claim(name, { max: 2, visibility_timeout_seconds: 3_600 });
  expect(claimed.map(({ payload }) => payload.n)).toEqual([0, 1]);

  let isFinished = false;
  let sent = 3;
  const sending = (async () => {
    for (; !isFinished; sent += 1) await send(sent);
  })();
  const acked: number[] = [];
  /**
   * Messages that a repeated request did not ack: the first request acked them and its response was lost, or they can
   * be claimed again.
   */
  const doubtful = new Set<number>();
  const working = (async () => {
    for (let isEmpty = false; !isFinished || !isEmpty; ) {
      const claimed = await claim({ max: 100, visibility_timeout_seconds: 30, wait_seconds: 1 });
      isEmpty = claimed?.length === 0;
      if (claimed === undefined || isEmpty) continue;
      const messages = claimed.map(({ receipt }) => ({ receipt }));
      let tries = 0;
      const done = await waitUntil(
        `${messages.length} messages are acked`,
        async () => {
          tries += 1;
          const response = await rest
            .post<{ done: string[] }>(path("/messages/ack"), { messages })
            .catch(() => undefined);
          return response?.status === 200 ? new Set(response.json.done) : undefined;
        },
        patient,
      );
      if (tries > 1) for (const { receipt, payload } of claimed) if (!done.has(receipt)) doubtful.add(payload.n);
      // The others belong to another claim: it came after this one, or this one was rolled back.
      acked.push(...claimed.filter(({ receipt }) => done.has(receipt)).map(({ payload }) => payload.n));
    }
  })();

  return {
    async check({ mayLoseLast = false } = {}) {
      const before = acked.length;
      await waitUntil("messages continue", () => acked.length > before + 3, patient);
      isFinished = true;
      await Promise.all([sending, working]);
      const list = await waitUntil("the remaining messages are listed", async () => {
        const response = await rest.get<{ messages: MessageJson[] }>(path("/messages?limit=100"));
        return response.status === 200 ? response.json.messages : undefined;
      });
      expect(list.slice(0, 2)).toMatchObject([
        { id: claimed[0]?.id, payload: { n: 0 }, state: "inflight" },
        { id: claimed[1]?.id, payload: { n: 1 }, state: "inflight" },
      ]);
      const unacked = list.slice(2).map(({ payload }) => payload.n);
      // A claim whose response was lost hides its messages until its timeout; they are neither acked nor deleted.
      const ends = [...acked, ...unacked];
      const all = Array.from({ length: sent - 2 }, (_, n) => n + 2);
      const missing = all.filter((n) => !ends.includes(n) && !doubtful.has(n));
      const returned = ends.filter((n, at) => ends.indexOf(n) < at);
      expect(ends.filter((n) => !all.includes(n))).toEqual([]);
      if (mayLoseLast) {
        // One sender and one worker, each with one request at a time: what a failover undoes of each is one contiguous
        // run.
        expect({ lost: missing, passed: skippedIn(missing, all) }).toEqual({ lost: missing, passed: [] });
        expect({ back: returned, passed: skippedIn(returned, [...new Set(ends)]) }).toEqual({
          back: returned,
          passed: [],
        });
      } else expect({ lost: missing, back: returned }).toEqual({ lost: [], back: [] });
      const settled = await rest.post<{ done: string[]; lost: string[] }>(path("/messages/ack"), {
        messages: claimed.map(({ receipt }) => ({ receipt })),
      });
      expect(expectStatus(settled, 200).json).toEqual({ done: claimed.map(({ receipt }) => receipt), lost: [] });
    },
  };
}

/** Members of this order between the first and the last of the numbers that are not among them. */
function skippedIn(numbers: readonly number[], order: readonly number[]): number[] {
  const positions = numbers.map((n) => order.indexOf(n));
  return order.slice(Math.min(...positions), Math.max(...positions) + 1).filter((n) => !numbers.includes(n));
}
