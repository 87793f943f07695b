import type { CreatedUser } from "./access-types.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** People, and their passwords. */
export class Users {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** A person without a password yet; the setup token in the answer is shown this once. */
  create(username: string, options?: CallOptions): Promise<CreatedUser> {
    return this.#transport.request("POST", "/users", { ...options, body: { username } });
  }

  /** Sets the password with the one-time token; needs no credential. */
  setUp(token: string, password: string, options?: CallOptions): Promise<void> {
    return this.#transport.request("POST", "/users/setup", { ...options, body: { token, password } });
  }

  /** A new setup token for who lost theirs or forgot the password; what was there before is worth nothing from now on. */
  reset(userId: string, options?: CallOptions): Promise<CreatedUser> {
    return this.#transport.request("POST", pathOf("users", userId, "reset"), options);
  }

  /** Of the caller. Every session of the old password ends at once, so it is sent once: again it would be refused. */
  changePassword(currentPassword: string, newPassword: string, options?: CallOptions): Promise<void> {
    const body = { current_password: currentPassword, new_password: newPassword };
    return this.#transport.request("POST", "/users/me/password", { ...options, body, single: true });
  }
}
