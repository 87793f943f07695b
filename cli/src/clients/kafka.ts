import type { EngineClient } from "./engine-client.ts";

export const kafka: EngineClient = {
  programs: ["kcat", "kafkacat"],
  session({ host, port, ca_certificate: ca }, { user, password }, files) {
    // Settings of librdkafka: the password is no argument, and the name in the certificate is verified by default.
    const settings = {
      "bootstrap.servers": `${host}:${port}`,
      "security.protocol": "SASL_SSL",
      "sasl.mechanisms": "SCRAM-SHA-512",
      "sasl.username": user,
      "sasl.password": password,
      "ssl.ca.location": files.write("ca.pem", ca),
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
    return { args: ["-F", files.write("kcat.conf", lines.join(""))], environment: {} };
  },
  resolvesName: true,
  hasManagedUsersOnly: true,
  electsLeader: true,
};
