import type { Delivery } from "./responses.ts";
import { WebhookMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** The response of a request that is carried out later. */
export interface Accepted {
  readonly message: string;
}

/** Webhook endpoints, which receive the organization's events as signed requests. */
export class Webhooks extends WebhookMethods {
  /** Delivers an event webhook.test regardless of the endpoint's filter. */
  test(id: string, options?: CallOptions): Promise<Accepted> {
    return this.transport.request("POST", pathOf("webhooks", id, "test"), options);
  }

  /** The newest 100 delivery attempts, newest first. */
  async deliveries(id: string, options?: CallOptions): Promise<readonly Delivery[]> {
    const path = pathOf("webhooks", id, "deliveries");
    return (await this.transport.request<{ deliveries: readonly Delivery[] }>("GET", path, options)).deliveries;
  }

  /** Delivers the event of an attempt again with the same event id. */
  redeliver(id: string, deliveryId: string, options?: CallOptions): Promise<Accepted> {
    const path = pathOf("webhooks", id, "deliveries", deliveryId, "redeliver");
    return this.transport.request("POST", path, options);
  }
}
