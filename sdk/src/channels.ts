import type { ChannelDelivery } from "./answers.ts";
import { ChannelMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";
import type { Accepted } from "./webhook-types.ts";

/** Where alerts are sent: HTTP endpoints and e-mail addresses. */
export class Channels extends ChannelMethods {
  /** Sends it an event channel.test. */
  test(id: string, options?: CallOptions): Promise<Accepted> {
    return this.transport.request("POST", pathOf("alerts", "channels", id, "test"), options);
  }

  /** The newest 100 attempts, newest first. */
  async deliveries(id: string, options?: CallOptions): Promise<readonly ChannelDelivery[]> {
    const path = pathOf("alerts", "channels", id, "deliveries");
    return (await this.transport.request<{ deliveries: readonly ChannelDelivery[] }>("GET", path, options)).deliveries;
  }
}
