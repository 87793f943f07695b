import type { ClaimedMessages, QueueMessage, QueueMessages, QueueTask, Receipts } from "./answers.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import type { AckedMessage, ClaimOptions, ExtendedMessage, MessageQuery, NackedMessage, NewMessage } from "./inputs.ts";
import { QueueMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Queues inside a PostgreSQL service, and their messages over HTTP. */
export class Queues extends QueueMethods {
  /**
   * Answers once up to 100 messages are stored; their ids are the task's result. Over 1 MiB they may wait for others
   * like them.
   */
  enqueue(
    serviceId: string,
    name: string,
    asked: { readonly messages: readonly NewMessage[] },
    options?: CallOptions,
  ): Promise<QueueTask> {
    return this.#post(serviceId, name, ["messages"], asked, { timeoutMs: 120_000, ...options });
  }

  /** With `task_id` the result of a request, else a page of messages, of which none is claimed by it. */
  messages(serviceId: string, name: string, query: MessageQuery = {}, options?: CallOptions): Promise<QueueMessages> {
    const asked = { ...options, query: { ...query } };
    return this.transport.request("GET", queuePath(serviceId, name, "messages"), asked);
  }

  /** Messages by id; none is claimed by it. */
  peek(serviceId: string, name: string, options?: ListOptions): List<QueueMessage> {
    return listOf(this.transport, queuePath(serviceId, name, "messages"), "messages", options);
  }

  /** Claims up to `max` messages, waiting up to `wait_seconds` for the first one. */
  claim(serviceId: string, name: string, claim: ClaimOptions = {}, options?: CallOptions): Promise<ClaimedMessages> {
    const timeoutMs = ((claim.wait_seconds ?? 0) + 30) * 1_000;
    return this.#post(serviceId, name, ["messages", "claim"], claim, { timeoutMs, ...options });
  }

  /** Removes messages that are done. */
  ack(
    serviceId: string,
    name: string,
    asked: { readonly messages: readonly AckedMessage[] },
    options?: CallOptions,
  ): Promise<Receipts> {
    return this.#post(serviceId, name, ["messages", "ack"], asked, options);
  }

  /** Gives messages back. */
  nack(
    serviceId: string,
    name: string,
    asked: { readonly messages: readonly NackedMessage[] },
    options?: CallOptions,
  ): Promise<Receipts> {
    return this.#post(serviceId, name, ["messages", "nack"], asked, options);
  }

  /** Keeps messages hidden for longer. */
  extend(
    serviceId: string,
    name: string,
    asked: { readonly messages: readonly ExtendedMessage[] },
    options?: CallOptions,
  ): Promise<Receipts> {
    return this.#post(serviceId, name, ["messages", "extend"], asked, options);
  }

  #post<T>(
    serviceId: string,
    name: string,
    verb: readonly string[],
    body: object,
    options: CallOptions | undefined,
  ): Promise<T> {
    return this.transport.request("POST", queuePath(serviceId, name, ...verb), { ...options, body });
  }
}

function queuePath(serviceId: string, ...rest: readonly string[]): string {
  return pathOf("managed-services", serviceId, "queues", ...rest);
}
