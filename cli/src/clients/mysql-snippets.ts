import type { Snippet, SnippetLanguage } from "./engine-client.ts";

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

  go: (values) => `// go mod init connect; go get github.com/go-sql-driver/mysql; go run connect.go
package main

import (
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"log"
	"os"

	"github.com/go-sql-driver/mysql"
)

func main() {
	password, err := os.ReadFile(${double(values.passwordFile)})
	if err != nil {
		log.Fatal(err)
	}
	authority, err := os.ReadFile(${double(values.caFile)})
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	config := mysql.NewConfig()
	config.Net, config.Addr = "tcp", ${double(`${bracketed(values.address)}:${values.port}`)}
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
	fmt.Println(user, database)
}`,

  java: (values) => `// java -cp mariadb-java-client.jar Connect.java
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.util.Properties;

public class Connect {
  public static void main(String[] args) throws Exception {
    // A file with address and name; the line is not needed once the name resolves on this host.
    System.setProperty("jdk.net.hosts.file", ${double(values.hostsFile)});
    var properties = new Properties();
    properties.setProperty("user", ${double(values.user)});
    properties.setProperty("password", Files.readString(Path.of(${double(values.passwordFile)})));
    properties.setProperty("sslMode", "verify-full");
    properties.setProperty("serverSslCert", ${double(values.caFile)});
    var url = "jdbc:mariadb://" + ${double(values.host)} + ":${values.port}/";
    try (var connection = DriverManager.getConnection(url, properties)) {
      connection.setCatalog(${double(values.database)});
      try (var row = connection.createStatement().executeQuery("${query}")) {
        row.next();
        System.out.println(row.getString(1) + " " + row.getString(2));
      }
    }
  }
}`,
};

const query = "SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1), DATABASE()";

/** A literal of JSON, which Python, JavaScript, Go and Java read too. */
const double = (text: string) => JSON.stringify(text);
const bracketed = (address: string) => (address.includes(":") ? `[${address}]` : address);
