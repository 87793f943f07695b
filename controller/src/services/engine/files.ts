import type { EngineProfile } from "./engine-profile.ts";

export const files: EngineProfile = {
  // Signatures of requests need the secret itself, which only instance specs have.
  verifierOf: () => "",
  usersHaveSecrets: true,
  hasDefaultUser: false,
  databases: [],
  connectionDatabase: "",
  uri: ({ host, port }) => `https://${host}:${port}`,
};
