import { UserMethods } from "./methods.ts";
import type { CallOptions } from "./transport.ts";

/** People, and their passwords. */
export class Users extends UserMethods {
  /** Of the caller. Every session of the old password ends at once, so it is sent once: again it would be refused. */
  changePassword(currentPassword: string, newPassword: string, options?: CallOptions): Promise<void> {
    const body = { current_password: currentPassword, new_password: newPassword };
    return this.transport.request("POST", "/users/me/password", { ...options, body, single: true });
  }
}
