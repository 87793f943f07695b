import type { PlatformEvent } from "./event-types.ts";
import { AlertMethods, ChannelMethods } from "./methods.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import type { ChannelDelivery } from "./responses.ts";
import { type CallOptions, pathOf } from "./transport.ts";
import type { Accepted } from "./webhooks.ts";

/** Alert rules on metrics of services, and firing alerts. */
export class Alerts extends AlertMethods {
  /** Events alert.fired and alert.resolved of a service, oldest first, also after its deletion. */
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

/** Notification channels of alerts: HTTP endpoints and e-mail addresses. */
export class Channels extends ChannelMethods {
  /** Sends an event channel.test to the channel. */
  test(id: string, options?: CallOptions): Promise<Accepted> {
    return this.transport.request("POST", pathOf("alerts", "channels", id, "test"), options);
  }

  /** The newest 100 delivery attempts, newest first. */
  async deliveries(id: string, options?: CallOptions): Promise<readonly ChannelDelivery[]> {
    const path = pathOf("alerts", "channels", id, "deliveries");
    return (await this.transport.request<{ deliveries: readonly ChannelDelivery[] }>("GET", path, options)).deliveries;
  }
}
