import { binaryOf, bsonTypes, fieldsNamed, fieldsOf, textOf } from "../protocol/fields.ts";
import type { Request } from "../protocol/request.ts";

/** Name of a user in a sign-in; undefined if its form is not one that the front end reads as the engine does. */
export interface SignIn {
  readonly user: string | undefined;
}

/** Client's first message of SCRAM (RFC 5802) without an authorization id, channel binding or extensions. */
const clientFirst = /^n,,n=([A-Za-z0-9_-]{1,63}),r=[\x21-\x2b\x2d-\x7e]{16,256}$/;

const greetings = ["hello", "isMaster", "ismaster"];

/** The sign-in that a request begins, also inside a greeting; undefined if it begins none. */
export function signInOf({ command, fields }: Pick<Request, "command" | "fields">): SignIn | undefined {
  if (command === "saslStart") return { user: userIn(fields) };
  if (!greetings.includes(command)) return undefined;
  const speculative = fieldsNamed(fields, "speculativeAuthenticate");
  const [first, second] = speculative;
  if (first === undefined) return undefined;
  return {
    user: second === undefined && first.type === bsonTypes.document ? userIn(fieldsOf(first.value)) : undefined,
  };
}

/** A repeated field could be another one for the engine. */
function userIn(fields: Request["fields"]): string | undefined {
  const [mechanism, otherMechanism] = fieldsNamed(fields, "mechanism");
  const [payload, otherPayload] = fieldsNamed(fields, "payload");
  if (mechanism === undefined || payload === undefined) return undefined;
  if (otherMechanism !== undefined || otherPayload !== undefined) return undefined;
  if (textOf(mechanism) !== "SCRAM-SHA-256") return undefined;
  return clientFirst.exec(binaryOf(payload)?.toString("utf8") ?? "")?.[1];
}
