import { type ConsoleEngine, withParameter } from "./console-engine.ts";

export const postgresql: ConsoleEngine = {
  firstQuery: "SELECT now()",
  hasQueues: true,
  sql: {
    dialect: "PostgreSQL",
    defaultSchema: "public",
    schemaQuery: `SELECT table_schema, table_name, column_name FROM information_schema.columns
WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2, ordinal_position`,
  },
  snippets: ({ host, port, user, database, uri }) => [
    { title: "URI", text: withParameter(uri, "sslrootcert=ca.pem") },
    {
      title: "psql",
      text: `psql "host=${host} port=${port} user=${user} dbname=${database} sslmode=verify-full sslrootcert=ca.pem"`,
    },
    {
      title: "Python",
      text: [
        "import os, psycopg",
        `connection = psycopg.connect(host="${host}", port=${port}, user="${user}", dbname="${database}",`,
        '    password=os.environ["PASSWORD"], sslmode="verify-full", sslrootcert="ca.pem")',
      ].join("\n"),
    },
    {
      title: "Node.js",
      text: [
        'import { readFileSync } from "node:fs";',
        'import pg from "pg";',
        `const client = new pg.Client({ host: "${host}", port: ${port}, user: "${user}", database: "${database}",`,
        '  password: process.env.PASSWORD, ssl: { ca: readFileSync("ca.pem", "utf8") } });',
        "await client.connect();",
      ].join("\n"),
    },
    {
      title: "Go",
      text: [
        'import "github.com/jackc/pgx/v5"',
        `url := "postgres://${user}@${host}:${port}/${database}?sslmode=verify-full&sslrootcert=ca.pem"`,
        "connection, err := pgx.Connect(ctx, url) // the password is in PGPASSWORD",
      ].join("\n"),
    },
    {
      title: "JDBC",
      text: `jdbc:postgresql://${host}:${port}/${database}?user=${user}&sslmode=verify-full&sslrootcert=ca.pem`,
    },
  ],
};
