import type { Snippet } from "./engine-client.ts";

/** A literal of JSON, which Python, JavaScript, Go and Java read too. */
export const double = (text: string) => JSON.stringify(text);

/** The text as one word of a shell. */
export const shell = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** An address as it is in a URI. */
export const bracketed = (address: string) => (address.includes(":") ? `[${address}]` : address);

/** Address and port as they are in a URI. */
export const socketOf = ({ address, port }: Pick<Snippet, "address" | "port">) => `${bracketed(address)}:${port}`;

interface GoProgram {
  /** The module that `go get` installs. */
  readonly module: string;
  /** Packages of the module that the program imports; the module itself by default. */
  readonly packages?: readonly string[];
  /** The package of the standard library that the program imports besides those of the certificates. */
  readonly standard: string;
  /** Lines of `main`, which use `password`, the pool `roots` and `err`. */
  readonly connect: string;
}

/** A Go program that reads password and certificate authority, then connects. */
export function goProgram(
  { passwordFile, caFile }: Snippet,
  { module, packages = [module], standard, connect }: GoProgram,
): string {
  const imports = ["crypto/tls", "crypto/x509", "fmt", "log", "os", standard].sort();
  const lines = (names: readonly string[]) => names.map((name) => `\t"${name}"`).join("\n");
  return `// go mod init connect; go get ${module}; go run connect.go
package main

import (
${lines(imports)}

${lines(packages)}
)

func main() {
	password, err := os.ReadFile(${double(passwordFile)})
	if err != nil {
		log.Fatal(err)
	}
	authority, err := os.ReadFile(${double(caFile)})
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
${connect}
}`;
}

interface JavaProgram {
  /** The driver's file. */
  readonly jar: string;
  /** Lines of `main`, which use the `properties` of the connection. */
  readonly connect: string;
}

/** A Java program that connects to the name by JDBC, with the user and the password as properties. */
export function javaProgram({ hostsFile, user, passwordFile }: Snippet, { jar, connect }: JavaProgram): string {
  return `// java -cp ${jar} Connect.java
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.DriverManager;
import java.util.Properties;

public class Connect {
  public static void main(String[] args) throws Exception {
    // A file with address and name; the line is not needed once the name resolves on this host.
    System.setProperty("jdk.net.hosts.file", ${double(hostsFile)});
    var properties = new Properties();
    properties.setProperty("user", ${double(user)});
    properties.setProperty("password", Files.readString(Path.of(${double(passwordFile)})));
${connect}
  }
}`;
}
