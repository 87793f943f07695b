import type { ConsoleEngine } from "./console-engine.ts";

export const mysql: ConsoleEngine = {
  firstQuery: "SELECT NOW()",
  sql: {
    dialect: "MySQL",
    defaultSchema: "defaultdb",
    schemaQuery: `SELECT table_schema, table_name, column_name FROM information_schema.columns
WHERE table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys') ORDER BY 1, 2, ordinal_position`,
  },
  snippets: ({ host, port, user, database, uri }) => [
    { title: "URI", text: `${uri}&ssl-ca=ca.pem` },
    {
      title: "mysql",
      text: `mysql -h ${host} -P ${port} -u ${user} -p --ssl-mode=VERIFY_IDENTITY --ssl-ca=ca.pem ${database}`,
    },
    {
      title: "Python",
      text: [
        "import os, mysql.connector",
        `connection = mysql.connector.connect(host="${host}", port=${port}, user="${user}", database="${database}",`,
        '    password=os.environ["PASSWORD"], ssl_ca="ca.pem", ssl_verify_identity=True)',
      ].join("\n"),
    },
    {
      title: "Node.js",
      text: [
        'import { readFileSync } from "node:fs";',
        'import mysql from "mysql2/promise";',
        `const client = await mysql.createConnection({ host: "${host}", port: ${port}, user: "${user}",`,
        `  database: "${database}", password: process.env.PASSWORD, ssl: { ca: readFileSync("ca.pem", "utf8") } });`,
      ].join("\n"),
    },
    {
      title: "JDBC",
      text: `jdbc:mysql://${host}:${port}/${database}?user=${user}&sslMode=VERIFY_IDENTITY`,
    },
  ],
};
