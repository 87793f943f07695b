import type { ConsoleEngine } from "./console-engine.ts";

export const kafka: ConsoleEngine = {
  snippets: ({ host, port, user, uri }) => [
    { title: "URI", text: uri },
    {
      title: "kcat",
      text: [
        `kcat -b ${host}:${port} -X security.protocol=SASL_SSL -X sasl.mechanism=SCRAM-SHA-512 \\`,
        `  -X sasl.username=${user} -X sasl.password="$PASSWORD" -X ssl.ca.location=ca.pem -L`,
      ].join("\n"),
    },
    {
      title: "Node.js",
      text: [
        'import { readFileSync } from "node:fs";',
        'import { Kafka } from "kafkajs";',
        `const kafka = new Kafka({ brokers: ["${host}:${port}"], ssl: { ca: readFileSync("ca.pem", "utf8") },`,
        `  sasl: { mechanism: "scram-sha-512", username: "${user}", password: process.env.PASSWORD } });`,
      ].join("\n"),
    },
    {
      title: "Java",
      text: [
        `bootstrap.servers=${host}:${port}`,
        "security.protocol=SASL_SSL",
        "sasl.mechanism=SCRAM-SHA-512",
        "ssl.truststore.type=PEM",
        "ssl.truststore.location=ca.pem",
      ].join("\n"),
    },
  ],
  hasTopics: true,
};
