import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { appKind } from "../app/app.ts";
import type { AuthObject } from "./auth.ts";
import type { AuthEffect } from "./auth-lifecycle.ts";

// biome-ignore format: a table, aligned so that it reads as one
const announced: Record<AuthEffect, string | undefined> = {
  none:             undefined,
  announceEnabled:  "auth.enabled",
  announceDisabled: "auth.disabled",
  announceFailed:   "auth.failed",
};

/** The event that an effect of the life cycle announces: one of the app. */
export function authEvent(effect: AuthEffect, auth: AuthObject): NewEvent | undefined {
  const type = announced[effect];
  if (type === undefined) return undefined;
  const more = effect === "announceFailed" ? { failure_reason: auth.status.failureReason ?? "" } : {};
  return eventOf(type, auth, more);
}

export function keyRotated(auth: AuthObject, emergency: boolean): NewEvent {
  return eventOf("auth.key_rotated", auth, { emergency });
}

export function mailFailing(auth: AuthObject, reason: string): NewEvent {
  return eventOf("auth.mail_failing", auth, { reason });
}

function eventOf(type: string, { metadata, spec, status }: AuthObject, more: object): NewEvent {
  return {
    type,
    organizationId: metadata.organizationId,
    objectKind: appKind.name,
    objectId: metadata.id,
    data: { app_id: metadata.id, auth_id: spec.authId, status: status.state, ...more },
  };
}
