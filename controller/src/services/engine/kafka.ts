import { pbkdf2Sync, randomBytes } from "node:crypto";
import type { EngineProfile } from "./engine-profile.ts";

const saslMechanisms = ["SCRAM-SHA-256", "SCRAM-SHA-512"];

export const kafka: EngineProfile = {
  verifierOf: (password) => kafkaVerifier(password),
  databases: [],
  connectionDatabase: "",
  peersHaveSecret: true,
  peersShareData: true,
  copiesCreateUsers: true,
  // Clients of Kafka have no URI: they get a list of brokers, and sign in by settings of their own.
  uri: ({ host, port }) => `${host}:${port}`,
  connectionForms: ({ service, nodeHosts, privateListener }) => ({
    bootstrapServers: brokersOf(nodeHosts, service.port),
    securityProtocol: "SASL_SSL",
    saslMechanisms,
    ...(privateListener && {
      privateBootstrapServers: brokersOf(privateListener.nodeHosts, privateListener.port),
      privateSecurityProtocol: "SASL_PLAINTEXT",
      privateSaslMechanisms: saslMechanisms,
    }),
  }),
};

function brokersOf(hosts: readonly string[], port: number): string {
  return hosts.map((host) => `${host}:${port}`).join();
}

/** Kafka accepts 4,096 to 16,384. */
const scramIterations = 8_192;
// biome-ignore format: a table
const scramMechanisms = [["SCRAM-SHA-256", "sha256", 32], ["SCRAM-SHA-512", "sha512", 64]] as const;

/**
 * Kafka's verifier of a password: its salted password by each mechanism of SCRAM (RFC 5802), from which brokers derive
 * the keys that they store. A salted password is sufficient to sign in, so it is as secret as the password itself.
 */
export function kafkaVerifier(password: string, salt: Uint8Array = randomBytes(24)): string {
  return scramMechanisms
    .map(([name, digest, bytes]) => {
      const salted = pbkdf2Sync(password, salt, scramIterations, bytes, digest).toString("base64");
      return `${name}$${scramIterations}:${Buffer.from(salt).toString("base64")}$${salted}`;
    })
    .join();
}
