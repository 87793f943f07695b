import { authSchemaVersions } from "@holdfast/common/auth-schema/versions.ts";
import { type AuthObject, type AuthStep, isEnabled } from "./auth.ts";
import { nextRetirement } from "./signing-keys.ts";

/** Observed state of a sign-in: database service, DNS, time. */
export interface ObservedAuth {
  readonly now: number;
  /** The service with the users; undefined if it was deleted. `data` is the result of `dataIdOf`. */
  readonly service: { readonly isRunning: boolean; readonly grantsAccess: boolean; readonly data: string } | undefined;
  /** True if the DNS zone has the name. */
  readonly hasName: boolean;
}

export type AuthPlan =
  | { readonly kind: "step"; readonly step: AuthStep }
  | { readonly kind: "provisioned" }
  | { readonly kind: "fail"; readonly message: string }
  | { readonly kind: "retireKeys" }
  /** Revoke the issuers' access to the database and delete the DNS name, because the sign-in is disabled. */
  | { readonly kind: "withdraw" }
  | { readonly kind: "health"; readonly reason: string | null }
  | { readonly kind: "settled"; readonly recheckMs: number | undefined };

/** All steps, in the order of execution. */
const steps: readonly AuthStep[] = ["access", "schema", "erasures", "mail", "name", "issuer"];
const stuckAfterMs = 10 * 60_000;
/**
 * An agent installs the schema version of its release, so after an upgrade of the agent a retry can install a newer
 * one.
 */
const schemaRetryMs = 10 * 60_000;

/** Remedies that users read if a step makes no progress. */
const remedies: Readonly<Record<AuthStep, string>> = {
  access: "the service with the database must run",
  schema: "the database must exist and permit the schema _mdb_auth",
  erasures: "the platform's history and the service must respond",
  mail: "the mail server must accept the user name and password",
  name: "the platform's name servers must respond",
  issuer: "the issuers must reach the database, and respond at their host name",
};

/** The next action for the sign-in of an app. */
export function planAuth(auth: AuthObject, { now, service, hasName }: ObservedAuth): AuthPlan {
  const { spec, status } = auth;
  const retirement = nextRetirement(spec.keys);
  if (retirement !== undefined && retirement <= now) return { kind: "retireKeys" };
  const recheckMs = retirement === undefined ? undefined : retirement - now;
  if (!isEnabled(auth))
    return hasName || service?.grantsAccess === true ? { kind: "withdraw" } : { kind: "settled", recheckMs };

  const step = nextStep(auth, service, hasName, now);
  if (status.state === "Active") {
    const reason = healthOf(service, status);
    if (reason !== status.health.reason) return { kind: "health", reason };
    if (step !== undefined && service?.isRunning === true) return { kind: "step", step };
    const isOld = status.schemaVersion !== authSchemaVersions.length;
    return {
      kind: "settled",
      recheckMs: isOld ? Math.min(schemaRetryMs, recheckMs ?? schemaRetryMs) : recheckMs,
    };
  }
  if (step === undefined) return { kind: "provisioned" };
  if (service === undefined) return { kind: "fail", message: `${step}: the service with the database was deleted` };
  if (now > status.progressAt + stuckAfterMs)
    return { kind: "fail", message: `${step}: no progress for 10 minutes; ${remedies[step]}` };
  return { kind: "step", step };
}

/** The first incomplete step. For an Active sign-in the steps `mail` and `issuer` are not repeated. */
function nextStep(
  { status }: AuthObject,
  service: ObservedAuth["service"],
  hasName: boolean,
  now: number,
): AuthStep | undefined {
  const newest = authSchemaVersions.length;
  // Issuers also support the previous schema version, so an agent without the newest one does not block the sign-in.
  const mayWait = status.state !== "Active" || now < status.progressAt + schemaRetryMs;
  const isDone = (step: AuthStep) => {
    if (step === "access") return service?.grantsAccess === true;
    if (step === "schema")
      return status.done.includes(step) && (status.schemaVersion ?? 0) >= (mayWait ? newest - 1 : newest);
    if (step === "erasures") return service !== undefined && status.replayedDataId === service.data;
    if (step === "name") return hasName;
    return status.state === "Active" || status.done.includes(step);
  };
  return steps.find((step) => !isDone(step));
}

function healthOf(
  service: ObservedAuth["service"],
  { mailError, mailLimit }: Pick<AuthObject["status"], "mailError" | "mailLimit">,
): string | null {
  if (service === undefined) return "The service with the users was deleted.";
  if (!service.isRunning) return "The service with the users is not Running.";
  if (mailError !== null) return `Mails are not sent: ${mailError}`;
  if (mailLimit === null) return null;
  return mailLimit === "everybody"
    ? "mails_per_hour is used up: for up to an hour, only browsers that signed in before get mails."
    : "mails_per_hour is used up: for up to an hour, addresses without a user get no mails.";
}
