import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
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

/** The event of a lifecycle effect, whose object is the app; undefined for an effect without one. */
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
    data: {
      app_id: metadata.id,
      app_name: metadata.name,
      auth_id: spec.authId,
      service_id: spec.serviceId,
      status: status.state,
      ...more,
    },
  };
}

const data = {
  app_id: { type: "uuid", meaning: "id of the app" },
  app_name: { type: "string", meaning: "name of the app" },
  auth_id: { type: "uuid", meaning: "id of the app's sign-in" },
  service_id: { type: "uuid", meaning: "id of the service that stores the users" },
  status: { type: "string", meaning: "status of the sign-in after the event" },
} as const satisfies EventDefinition["data"];

const example = {
  app_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10",
  app_name: "shop",
  auth_id: "0198f2a4-8f31-7c02-9d4e-6a1b7c3d5e80",
  service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f11",
  status: "Active",
};

/** The events of apps' sign-in. */
export const authEventDefinitions = {
  "auth.enabled": { when: "users can sign in to an app", data, example, optIn: true },
  "auth.disabled": {
    when: "the sign-in of an app was switched off",
    data,
    example: { ...example, status: "Disabled" },
    optIn: true,
  },
  "auth.failed": {
    when: "the sign-in of an app could not be provisioned",
    data: { ...data, failure_reason: { type: "string", meaning: "the step that failed, and its remedy" } },
    example: {
      ...example,
      status: "Failed",
      failure_reason:
        "mail: The mail server refused the user name and password. Give those of an account that may send mail. Then enable the sign-in again.",
    },
    optIn: true,
  },
  "auth.key_rotated": {
    when: "another key signs the tokens of an app",
    data: { ...data, emergency: { type: "boolean", meaning: "the previous keys are invalid" } },
    example: { ...example, emergency: false },
    optIn: true,
  },
  "auth.mail_failing": {
    when: "the mail server of an app does not accept mails any more",
    data: { ...data, reason: { type: "string", meaning: "error of the mail server, without addresses" } },
    example: { ...example, reason: "The mail server refused the user name and password." },
    optIn: true,
  },
  "auth.user.deleted": {
    when: "an end user of an app was erased",
    data: {
      user_id: { type: "uuid", meaning: "id of the user, if the request named the user by id", optional: true },
      email_digest: {
        type: "string",
        meaning: "keyed digest of the address, if the request named the user by address",
        optional: true,
      },
    },
    example: { user_id: "0198f2a4-9d31-7e24-b18e-4f7a0e2d6c53" },
  },
} as const satisfies Readonly<Record<string, EventDefinition>>;
