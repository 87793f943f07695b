import { authSchemaVersions } from "@holdfast/common/auth-schema/versions.ts";
import { type AuthObject, type AuthStep, isOn } from "./auth.ts";
import { nextRetirement } from "./signing-keys.ts";

/** What is there beside the object. */
export interface ObservedAuth {
  readonly now: number;
  /** The service with the users; undefined when it is gone. */
  readonly service: { readonly isRunning: boolean; readonly grantsAccess: boolean; readonly data: string } | undefined;
  /** Does the zone have the name? */
  readonly hasName: boolean;
}

export type AuthPlan =
  | { readonly kind: "step"; readonly step: AuthStep }
  | { readonly kind: "provisioned" }
  | { readonly kind: "fail"; readonly message: string }
  | { readonly kind: "retireKeys" }
  /** Nobody is to reach anything by it any more. */
  | { readonly kind: "withdraw" }
  | { readonly kind: "health"; readonly reason: string | null }
  | { readonly kind: "settled"; readonly lookAgainMs: number | undefined };

/** In the order in which they are done. */
const steps: readonly AuthStep[] = ["access", "schema", "erasures", "mail", "name", "issuer"];
const stuckAfterMs = 10 * 60_000;
/** Agents of an older version bring a schema to theirs; after an upgrade of theirs it is tried again. */
const schemaAgainMs = 10 * 60_000;

/** Words for users: what is to be looked at when a step does not come to its end. */
const mends: Readonly<Record<AuthStep, string>> = {
  access: "the service with the database must run",
  schema: "the database must exist and take the schema _mdb_auth",
  erasures: "the history of the platform and the service must answer",
  mail: "the mail server must take the user name and password",
  name: "the name servers of the platform must answer",
  issuer: "the issuers must reach the database, and answer under their name",
};

/** Pure: the next thing to do for the sign-in of an app. */
export function planAuth(auth: AuthObject, { now, service, hasName }: ObservedAuth): AuthPlan {
  const { spec, status } = auth;
  const retirement = nextRetirement(spec.keys);
  if (retirement !== undefined && retirement <= now) return { kind: "retireKeys" };
  const lookAgainMs = retirement === undefined ? undefined : retirement - now;
  if (!isOn(auth))
    return hasName || service?.grantsAccess === true ? { kind: "withdraw" } : { kind: "settled", lookAgainMs };

  const step = nextStep(auth, service, hasName, now);
  if (status.state === "Active") {
    const reason = healthOf(service, status);
    if (reason !== status.health.reason) return { kind: "health", reason };
    if (step !== undefined && service?.isRunning === true) return { kind: "step", step };
    const isOld = status.schemaVersion !== authSchemaVersions.length;
    return {
      kind: "settled",
      lookAgainMs: isOld ? Math.min(schemaAgainMs, lookAgainMs ?? schemaAgainMs) : lookAgainMs,
    };
  }
  if (step === undefined) return { kind: "provisioned" };
  if (service === undefined) return { kind: "fail", message: `${step}: the service with the database is gone` };
  if (now > status.progressAt + stuckAfterMs)
    return { kind: "fail", message: `${step}: no progress for 10 minutes; ${mends[step]}` };
  return { kind: "step", step };
}

/** One that is Active is held to what it needs, without asking its mail server and its issuers again. */
function nextStep(
  { status }: AuthObject,
  service: ObservedAuth["service"],
  hasName: boolean,
  now: number,
): AuthStep | undefined {
  const newest = authSchemaVersions.length;
  // Issuers serve the version before too: an agent that has no newer one brings nothing to a stop.
  const mayWait = status.state !== "Active" || now < status.progressAt + schemaAgainMs;
  const isDone = (step: AuthStep) => {
    if (step === "access") return service?.grantsAccess === true;
    if (step === "schema")
      return status.done.includes(step) && (status.schemaVersion ?? 0) >= (mayWait ? newest - 1 : newest);
    if (step === "erasures") return service !== undefined && status.erasedOver === service.data;
    if (step === "name") return hasName;
    return status.state === "Active" || status.done.includes(step);
  };
  return steps.find((step) => !isDone(step));
}

function healthOf(
  service: ObservedAuth["service"],
  { mailTrouble, mailLimit }: Pick<AuthObject["status"], "mailTrouble" | "mailLimit">,
): string | null {
  if (service === undefined) return "The service with the users is gone.";
  if (!service.isRunning) return "The service with the users does not run.";
  if (mailTrouble !== null) return `Mails are not sent: ${mailTrouble}`;
  if (mailLimit === null) return null;
  return `mails_per_hour is used up: ${mailLimit === "everybody" ? "nobody gets" : "addresses without a user get no"} mails for a while.`;
}
