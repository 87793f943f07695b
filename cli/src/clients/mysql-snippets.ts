import type { Snippet, SnippetLanguage } from "./engine-client.ts";
import { double, goProgram, javaProgram, socketOf } from "./snippet-parts.ts";

/**
 * Complete programs that connect to the address and verify the name. The libraries of Ruby and PHP verify the name that
 * they connect to, so that they cannot do both. Each program prints user and database.
 */
// The comment of each line is the command that runs the program.
export const mysqlSnippets: Readonly<Partial<Record<SnippetLanguage, (values: Snippet) => string>>> = {
  python: (values) => `# pip install "pymysql[rsa]"; python3 connect.py
import socket
import ssl
from pathlib import Path

import pymysql

connection = pymysql.connect(
    # The certificate has the name, not the address.
    host=${double(values.host)},
    user=${double(values.user)},
    password=Path(${double(values.passwordFile)}).read_text(),
    database=${double(values.database)},
    ssl=ssl.create_default_context(cafile=${double(values.caFile)}),
    defer_connect=True,
)
connection.connect(socket.create_connection((${double(values.address)}, ${values.port})))
with connection, connection.cursor() as cursor:
    cursor.execute("${query}")
    print(*cursor.fetchone())`,

  node: (values) => `// npm install mysql2; node connect.mjs
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import mysql from "mysql2/promise";

const connection = await mysql.createConnection({
  stream: connect(${values.port}, ${double(values.address)}),
  // The certificate has the name, not the address.
  host: ${double(values.host)},
  user: ${double(values.user)},
  password: readFileSync(${double(values.passwordFile)}, "utf8"),
  database: ${double(values.database)},
  ssl: { ca: readFileSync(${double(values.caFile)}), verifyIdentity: true },
});
const [rows] = await connection.query({ sql: "${query}", rowsAsArray: true });
console.log(...rows[0]);
await connection.end();`,

  go: (values) =>
    goProgram(values, {
      module: "github.com/go-sql-driver/mysql",
      standard: "database/sql",
      connect: `	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", ${double(socketOf(values))}
	config.User, config.Passwd = ${double(values.user)}, string(password)
	config.DBName = ${double(values.database)}
	// The certificate has the name, not the address.
	config.TLS = &tls.Config{RootCAs: roots, ServerName: ${double(values.host)}}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		log.Fatal(err)
	}
	var user, database string
	err = sql.OpenDB(connector).QueryRow("${query}").Scan(&user, &database)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(user, database)`,
    }),

  java: (values) =>
    javaProgram(values, {
      jar: "mariadb-java-client.jar",
      connect: `    properties.setProperty("sslMode", "verify-full");
    properties.setProperty("serverSslCert", ${double(values.caFile)});
    var url = "jdbc:mariadb://" + ${double(values.host)} + ":${values.port}/";
    try (var connection = DriverManager.getConnection(url, properties)) {
      connection.setCatalog(${double(values.database)});
      try (var row = connection.createStatement().executeQuery("${query}")) {
        row.next();
        System.out.println(row.getString(1) + " " + row.getString(2));
      }
    }`,
    }),
};

const query = "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1), DATABASE()";
