import { keyOf, newMetadata } from "../store/resource.ts";
import { makePassword, scramSha256Verifier, valkeyVerifier } from "../secrets/passwords.ts";
import type { Sealer } from "../secrets/sealer.ts";
import { type DatabaseUserObject, databaseUserId } from "./database-user.ts";

// What each engine keeps in place of a password.
const verifiers: Readonly<Record<string, (password: string) => string>> = {
  postgresql: (password) => scramSha256Verifier(password),
  valkey: valkeyVerifier,
};

export interface NewUserArgs {
  readonly serviceId: string;
  readonly organizationId: string;
  readonly username: string;
  readonly role: DatabaseUserObject["spec"]["role"];
  readonly engine: string;
  readonly sealer: Sealer;
  readonly now: number;
}

/** A user with a fresh random password: sealed in the object, and as the verifier that the engine gets. */
export function newUser({ serviceId, organizationId, username, role, engine, sealer, now }: NewUserArgs): {
  user: DatabaseUserObject;
  password: string;
} {
  const id = databaseUserId(serviceId, username);
  const password = makePassword();
  const verifierOf = verifiers[engine];
  if (verifierOf === undefined) throw new Error(`no verifier for passwords of ${engine}`);
  const user: DatabaseUserObject = {
    metadata: newMetadata(id, now, { name: username, organizationId }),
    spec: {
      serviceId,
      username,
      role,
      sealedPassword: sealer.seal(password, keyOf("database-user", id)),
      verifier: verifierOf(password),
    },
    status: {},
  };
  return { user, password };
}
