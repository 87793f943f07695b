import type { Snippet, SnippetLanguage } from "./engine-client.ts";
import { double, goProgram, javaProgram, shell } from "./snippet-parts.ts";

/**
 * Complete programs that connect to the address and verify the name. Passwords are in files, as in connection strings.
 * Each prints user and database.
 */
// The comment of each line is the command that runs the program.
export const postgresqlSnippets: Readonly<Record<Exclude<SnippetLanguage, "curl">, (values: Snippet) => string>> = {
  psql: ({ conninfo }) => `psql ${shell(conninfo)} -c ${shell(query)}`,

  python: ({ conninfo }) => `# pip install "psycopg[binary]"; python3 connect.py
import psycopg

with psycopg.connect(${double(conninfo)}) as connection:
    print(*connection.execute("${query}").fetchone())`,

  ruby: ({ conninfo }) => `# gem install pg; ruby connect.rb
require "pg"

connection = PG.connect(${single(conninfo)})
puts connection.exec("${query}").values.first.join(" ")`,

  php: ({ conninfo }) => `<?php // with the extension pgsql: php connect.php
$connection = pg_connect(${single(conninfo)}) or exit(1);
echo implode(" ", pg_fetch_row(pg_query($connection, "${query}"))), "\\n";`,

  node: (values) => `// npm install pg; node connect.mjs
import { readFileSync } from "node:fs";
import pg from "pg";

const client = new pg.Client({
  host: ${double(values.address)},
  port: ${values.port},
  user: ${double(values.user)},
  password: readFileSync(${double(values.passwordFile)}, "utf8"),
  database: ${double(values.database)},
  // The certificate has the name, not the address.
  ssl: { ca: readFileSync(${double(values.caFile)}), servername: ${double(values.host)} },
});
await client.connect();
const { rows } = await client.query({ text: "${query}", rowMode: "array" });
console.log(...rows[0]);
await client.end();`,

  go: (values) =>
    goProgram(values, {
      module: "github.com/jackc/pgx/v5",
      standard: "context",
      connect: `	config, err := pgx.ParseConfig("sslmode=disable")
	if err != nil {
		log.Fatal(err)
	}
	config.Host, config.Port = ${double(values.address)}, ${values.port}
	config.User, config.Password = ${double(values.user)}, string(password)
	config.Database = ${double(values.database)}
	// The certificate has the name, not the address.
	config.TLSConfig = &tls.Config{RootCAs: roots, ServerName: ${double(values.host)}}
	connection, err := pgx.ConnectConfig(context.Background(), config)
	if err != nil {
		log.Fatal(err)
	}
	var user, database string
	err = connection.QueryRow(context.Background(), "${query}").Scan(&user, &database)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(user, database)`,
    }),

  java: (values) =>
    javaProgram(values, {
      jar: "postgresql.jar",
      connect: `    properties.setProperty("PGDBNAME", ${double(values.database)});
    properties.setProperty("sslmode", "verify-full");
    properties.setProperty("sslrootcert", ${double(values.caFile)});
    var url = "jdbc:postgresql://" + ${double(values.host)} + ":${values.port}/";
    try (var connection = DriverManager.getConnection(url, properties);
        var statement = connection.createStatement();
        var row = statement.executeQuery("${query}")) {
      row.next();
      System.out.println(row.getString(1) + " " + row.getString(2));
    }`,
    }),
};

const query = "SELECT current_user, current_database()";

/** A literal of Ruby and PHP, which interpolate in double quotes only. */
const single = (text: string) => `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
