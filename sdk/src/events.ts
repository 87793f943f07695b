import type { EventFilter, EventType, OrganizationEventFilter, PlatformEvent } from "./event-types.ts";
import { follow } from "./follow.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { pathOf, type Transport } from "./transport.ts";

/** The organization's events of the last 90 days, oldest first. */
export class Events {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Recorded events. */
  list<T extends EventType>(filter?: OrganizationEventFilter<T>, options?: ListOptions): List<PlatformEvent<T>> {
    return listOf(this.#transport, "/events", "events", options, { ...filter });
  }

  /** Recorded events of one service, also after its deletion. */
  listOfService<T extends EventType>(
    serviceId: string,
    filter?: EventFilter<T>,
    options?: ListOptions,
  ): List<PlatformEvent<T>> {
    const path = pathOf("managed-services", serviceId, "events");
    return listOf(this.#transport, path, "events", options, { ...filter });
  }

  /** Recorded events, then each new one, until the signal aborts; the iteration then throws the signal's reason. */
  follow<T extends EventType>(
    filter?: OrganizationEventFilter<T>,
    { limit, signal }: Pick<ListOptions, "signal" | "limit"> = {},
  ): AsyncGenerator<PlatformEvent<T>, void, undefined> {
    return follow(this.#transport, "/events", { ...filter, limit }, { signal });
  }
}
