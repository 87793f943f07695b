import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";
import type {
  Accepted,
  CreatedWebhook,
  Delivery,
  NewWebhook,
  RotatedSecret,
  Webhook,
  WebhookChange,
} from "./webhook-types.ts";

/** Endpoints that get the organization's events as signed requests. */
export class Webhooks {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(options?: ListOptions): List<Webhook> {
    return listOf(this.#transport, "/webhooks", "webhooks", options);
  }

  /** The only answer that shows the signing secret. */
  create(webhook: NewWebhook, options?: CallOptions): Promise<CreatedWebhook> {
    return this.#transport.request("POST", "/webhooks", { ...options, body: webhook });
  }

  get(id: string, options?: CallOptions): Promise<Webhook> {
    return this.#transport.request("GET", pathOf("webhooks", id), options);
  }

  update(id: string, change: WebhookChange, options?: CallOptions): Promise<Webhook> {
    return this.#transport.request("PATCH", pathOf("webhooks", id), { ...options, body: change });
  }

  delete(id: string, options?: CallOptions): Promise<void> {
    return this.#transport.request("DELETE", pathOf("webhooks", id), { ...options, goneIsDone: true });
  }

  /** Delivers an event webhook.test, whatever the endpoint's filter. */
  test(id: string, options?: CallOptions): Promise<Accepted> {
    return this.#transport.request("POST", pathOf("webhooks", id, "test"), options);
  }

  /** A new secret; the old one signs too for the overlap, 24 hours when left out. */
  rotateSecret(id: string, overlapHours?: number, options?: CallOptions): Promise<RotatedSecret> {
    const body = { overlap_hours: overlapHours };
    return this.#transport.request("POST", pathOf("webhooks", id, "rotate-secret"), { ...options, body });
  }

  /** The newest 100 attempts, newest first. */
  async deliveries(id: string, options?: CallOptions): Promise<readonly Delivery[]> {
    const path = pathOf("webhooks", id, "deliveries");
    return (await this.#transport.request<{ deliveries: readonly Delivery[] }>("GET", path, options)).deliveries;
  }

  /** Delivers the event of an attempt again, with the same event id. */
  redeliver(id: string, deliveryId: string, options?: CallOptions): Promise<Accepted> {
    const path = pathOf("webhooks", id, "deliveries", deliveryId, "redeliver");
    return this.#transport.request("POST", path, options);
  }
}
