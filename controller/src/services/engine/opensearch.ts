import { hashSync } from "bcryptjs";
import { authorityOf, type EngineProfile } from "./engine-profile.ts";

/** Passwords are random, so that a higher cost would only delay clients: the engine verifies one at each sign-in. */
const cost = 8;

export const opensearch: EngineProfile = {
  verifierOf: (password) => opensearchVerifier(password),
  databases: [],
  connectionDatabase: "",
  peersHaveSecret: true,
  peersShareData: true,
  copiesCreateUsers: true,
  uri: (target) => `https://${authorityOf(target)}`,
};

/** OpenSearch's verifier of a password: its hash by bcrypt. `salt`: a salt with its cost in bcrypt's format. */
export function opensearchVerifier(password: string, salt?: string): string {
  return hashSync(password, salt ?? cost);
}
