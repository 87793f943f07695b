import type { EngineProfile } from "./engine-profile.ts";
import { kafkaVerifier } from "./kafka-verifier.ts";

const saslMechanisms = ["SCRAM-SHA-256", "SCRAM-SHA-512"];

export const kafka: EngineProfile = {
  verifierOf: (password) => kafkaVerifier(password),
  databases: [],
  connectionDatabase: "",
  peersHaveSecret: true,
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
