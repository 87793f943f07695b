import type { EventFilter, PlatformEvent } from "./event-types.ts";
import { follow } from "./follow.ts";
import { HealthMethods } from "./methods.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf } from "./transport.ts";

type HealthChange = PlatformEvent<"service.health_changed">;

/** Health of services: the worst result of their checks, and its history. */
export class ServiceHealth extends HealthMethods {
  /** Changes to statuses that lasted for 10 s, oldest first, of the last 90 days. */
  history(serviceId: string, filter?: Omit<EventFilter, "type">, options?: ListOptions): List<HealthChange> {
    const path = pathOf("managed-services", serviceId, "health", "history");
    return listOf(this.transport, path, "events", options, { ...filter });
  }

  /** Recorded changes, then each new one, until the signal aborts; the iteration then throws the signal's reason. */
  followHistory(
    serviceId: string,
    filter?: Omit<EventFilter, "type">,
    options?: Pick<CallOptions, "signal">,
  ): AsyncGenerator<HealthChange, void, undefined> {
    return follow(this.transport, pathOf("managed-services", serviceId, "health", "history"), { ...filter }, options);
  }
}
