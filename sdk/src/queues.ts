import type { ClaimedMessages, QueueMessage, QueueMessages, QueueTask, Receipts } from "./responses.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import type {
  AckedMessage,
  ClaimOptions,
  ExtendedMessage,
  MessageQuery,
  NackedMessage,
  NewMessage,
} from "./requests.ts";
import { QueueMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Queues in a PostgreSQL service, and their messages over HTTP. */
export class Queues extends QueueMethods {
  /**
   * Stores up to 100 messages and resolves to a task, whose result has their ids. Requests over 1 MiB are processed one
   * after the other.
   */
  enqueue(
    serviceId: string,
    name: string,
    body: { readonly messages: readonly NewMessage[] },
    options?: CallOptions,
  ): Promise<QueueTask> {
    return this.#post(serviceId, name, ["messages"], body, { timeoutMs: 120_000, ...options });
  }

  /** With `task_id`, the result of a task; otherwise a page of messages, without claiming them. */
  messages(serviceId: string, name: string, query: MessageQuery = {}, options?: CallOptions): Promise<QueueMessages> {
    const request = { ...options, query: { ...query } };
    return this.transport.request("GET", queuePath(serviceId, name, "messages"), request);
  }

  /** Messages in the order of their ids, without claiming them. */
  peek(serviceId: string, name: string, options?: ListOptions): List<QueueMessage> {
    return listOf(this.transport, queuePath(serviceId, name, "messages"), "messages", options);
  }

  /** Claims up to `max` messages, waiting up to `wait_seconds` for the first one. */
  claim(serviceId: string, name: string, claim: ClaimOptions = {}, options?: CallOptions): Promise<ClaimedMessages> {
    const timeoutMs = ((claim.wait_seconds ?? 0) + 30) * 1_000;
    return this.#post(serviceId, name, ["messages", "claim"], claim, { timeoutMs, ...options });
  }

  /** Removes handled messages. */
  ack(
    serviceId: string,
    name: string,
    body: { readonly messages: readonly AckedMessage[] },
    options?: CallOptions,
  ): Promise<Receipts> {
    return this.#post(serviceId, name, ["messages", "ack"], body, options);
  }

  /** Returns messages to the queue for another attempt. */
  nack(
    serviceId: string,
    name: string,
    body: { readonly messages: readonly NackedMessage[] },
    options?: CallOptions,
  ): Promise<Receipts> {
    return this.#post(serviceId, name, ["messages", "nack"], body, options);
  }

  /** Extends the visibility timeout of claimed messages. */
  extend(
    serviceId: string,
    name: string,
    body: { readonly messages: readonly ExtendedMessage[] },
    options?: CallOptions,
  ): Promise<Receipts> {
    return this.#post(serviceId, name, ["messages", "extend"], body, options);
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
