import type { EngineClient } from "./engine-client.ts";

/** FreeTDS's `tsql`. It reads its settings from a file, and the password from standard input. */
export const tsql: EngineClient = {
  uriAuthority: "certificate",
  programs: ["tsql"],
  session(connection, { user, password, database }, files) {
    const { host, port, ca_certificate: ca } = connection;
    const settings = [
      "[service]",
      `host = ${host}`,
      `port = ${port}`,
      "tds version = 7.4",
      "client charset = UTF-8",
      "encryption = require",
      `ca file = ${files.write("ca.pem", ca)}`,
      "check certificate hostname = yes",
      "",
    ].join("\n");
    return {
      args: ["-S", "service", "-U", user, "-D", database ?? connection.database, "-P", "-"],
      environment: { FREETDSCONF: files.write("freetds.conf", settings) },
      input: `${password}\n`,
    };
  },
};
