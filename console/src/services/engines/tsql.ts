import type { ConsoleEngine } from "./console-engine.ts";

export const tsql: ConsoleEngine = {
  snippets: ({ host, port, user, database, uri, jdbc_url, ado_connection_string, postgresql_uri }) => [
    { title: "URI", text: `${uri}&certificate=ca.pem` },
    {
      title: "Node.js",
      text: [
        'import { readFileSync } from "node:fs";',
        'import { Connection } from "tedious";',
        "const connection = new Connection({",
        `  server: "${host}",`,
        `  authentication: { type: "default", options: { userName: "${user}", password: process.env.PASSWORD } },`,
        `  options: { port: ${port}, database: "${database}", encrypt: true,`,
        '    cryptoCredentialsDetails: { ca: readFileSync("ca.pem", "utf8") } },',
        "});",
        "connection.connect();",
      ].join("\n"),
    },
    ...[
      ["JDBC", jdbc_url],
      ["ADO.NET", ado_connection_string],
      ["psql", postgresql_uri == null ? undefined : `psql "${postgresql_uri}&sslrootcert=ca.pem"`],
    ].flatMap(([title, text]) => (title == null || text == null ? [] : [{ title, text }])),
  ],
  hasAssessments: true,
};
