import type { EngineClient } from "./engine-client.ts";
import { mysqlSnippets } from "./mysql-snippets.ts";

export const mysql: EngineClient = {
  uriAuthority: "ssl-ca",
  programs: ["mysql"],
  session(connection, { user, password, database }, files) {
    const { host, port, ca_certificate: ca } = connection;
    const settings = ["[client]", `user=${quoted(user)}`, `password=${quoted(password)}`, ""].join("\n");
    // Must be the first argument. The file replaces the user's own settings.
    const first = `--defaults-file=${files.write("my.cnf", settings)}`;
    const verified = ["--ssl-mode=VERIFY_IDENTITY", `--ssl-ca=${files.write("ca.pem", ca)}`];
    const args = [
      first,
      "--protocol=TCP",
      "-h",
      host,
      "-P",
      String(port),
      ...verified,
      database ?? connection.database,
    ];
    return { args, environment: {} };
  },
  resolvesName: true,
  snippets: mysqlSnippets,
};

/** A value of an option file, whose quoted values have backslashes for special characters. */
function quoted(value: string): string {
  return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
