import type { ConsoleEngine } from "./console-engine.ts";

export const opensearch: ConsoleEngine = {
  snippets: ({ host, port, user, uri }) => [
    { title: "URI", text: uri },
    { title: "curl", text: `curl --cacert ca.pem --user ${user} https://${host}:${port}/_cluster/health` },
    {
      title: "Node.js",
      text: [
        'import { readFileSync } from "node:fs";',
        'import { Client } from "@opensearch-project/opensearch";',
        "const client = new Client({",
        `  node: "https://${host}:${port}",`,
        `  auth: { username: "${user}", password: process.env.PASSWORD },`,
        '  ssl: { ca: readFileSync("ca.pem") },',
        "});",
      ].join("\n"),
    },
  ],
  hasIndices: true,
};
