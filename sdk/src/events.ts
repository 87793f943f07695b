import { follow } from "./follow.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** What happened to an object of the organization; also the body of a webhook's delivery. */
export interface PlatformEvent {
  readonly id: string;
  /** Such as "service.running". */
  readonly event_type: string;
  /** RFC 3339 in UTC. */
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface EventFilter {
  readonly type?: string | undefined;
  /** RFC 3339; the list begins here, inclusive. */
  readonly since?: string | undefined;
}

/** The organization's events of the last 90 days, oldest first. */
export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Those so far, of one service when `service` is its id. */
  list(filter?: EventFilter & { readonly service?: string | undefined }, options?: ListOptions): List<PlatformEvent> {
    return listOf(this.#transport, "/events", "events", options, { ...filter });
  }

  /** Those so far of one service, also after it is gone. */
  listOfService(serviceId: string, filter?: EventFilter, options?: ListOptions): List<PlatformEvent> {
    const path = pathOf("managed-services", serviceId, "events");
    return listOf(this.#transport, path, "events", options, { ...filter });
  }

  /** Those so far, then each as it comes, until the signal aborts: the iteration then throws its reason. */
  follow(
    filter?: EventFilter & { readonly service?: string | undefined },
    options?: Pick<CallOptions, "signal">,
  ): AsyncGenerator<PlatformEvent, void, undefined> {
    return follow(this.#transport, "/events", { ...filter }, options);
  }
}
