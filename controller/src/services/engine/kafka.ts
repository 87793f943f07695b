import type { EngineProfile } from "./engine-profile.ts";
import { kafkaVerifier } from "./kafka-verifier.ts";

export const kafka: EngineProfile = {
  verifierOf: (password) => kafkaVerifier(password),
  databases: [],
  connectionDatabase: "",
  peersHaveSecret: true,
  // Clients of Kafka have no URI: they get a list of brokers, and sign in by settings of their own.
  uri: ({ host, port }) => `${host}:${port}`,
  connectionForms: ({ service, nodeHosts }) => ({
    bootstrapServers: nodeHosts.map((host) => `${host}:${service.port}`).join(),
    securityProtocol: "SASL_SSL",
    saslMechanisms: ["SCRAM-SHA-256", "SCRAM-SHA-512"],
  }),
};
