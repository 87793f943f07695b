import type { PlatformEvent } from "./event-types.ts";
import { AlertMethods } from "./methods.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { pathOf } from "./transport.ts";

/** Rules that watch a service's metrics, and the alerts that they bring. */
export class Alerts extends AlertMethods {
  /** Events alert.fired and alert.resolved of a service, oldest first, also after it is gone. */
  events(
    serviceId: string,
    filter?: { readonly since?: string | undefined },
    options?: ListOptions,
  ): List<PlatformEvent<"alert.fired" | "alert.resolved">> {
    return listOf(this.transport, pathOf("managed-services", serviceId, "alerts", "events"), "events", options, {
      ...filter,
    });
  }
}
