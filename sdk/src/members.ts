import type { Member, Role } from "./access-types.ts";
import { type List, type ListOptions, listOf } from "./pages.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** People of an organization. */
export class Members {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  list(organizationId: string, options?: ListOptions): List<Member> {
    return listOf(this.#transport, pathOf("organizations", organizationId, "members"), "members", options);
  }

  add(organizationId: string, userId: string, role: Role, options?: CallOptions): Promise<Member> {
    const path = pathOf("organizations", organizationId, "members");
    return this.#transport.request("POST", path, { ...options, body: { user_id: userId, role } });
  }

  update(organizationId: string, userId: string, role: Role, options?: CallOptions): Promise<Member> {
    const path = pathOf("organizations", organizationId, "members", userId);
    return this.#transport.request("PATCH", path, { ...options, body: { role } });
  }

  remove(organizationId: string, userId: string, options?: CallOptions): Promise<void> {
    const path = pathOf("organizations", organizationId, "members", userId);
    return this.#transport.request("DELETE", path, { ...options, goneIsDone: true });
  }
}
