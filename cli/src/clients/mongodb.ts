import type { EngineClient } from "./engine-client.ts";
import { mongodbSnippets } from "./mongodb-snippets.ts";

/** True for an argument of the shell that is a file, or that makes the next one a script. */
function isScript(argument: string): boolean {
  return !argument.startsWith("-") || /^--(eval|file)(=|$)|^-f/.test(argument);
}

/** MongoDB's shell. It gets the password in a script, since its arguments are visible to other users of the machine. */
export const mongodb: EngineClient = {
  uriAuthority: "tlsCAFile",
  programs: ["mongosh"],
  session(connection, { user, password, database }, files) {
    const { host, port, ca_certificate: ca } = connection;
    const [name, secret] = [user, password].map(encodeURIComponent);
    const options = new URLSearchParams({ tls: "true", authSource: "admin", tlsCAFile: files.write("ca.pem", ca) });
    const uri = `mongodb://${name}:${secret}@${host}:${port}/${database ?? connection.database}?${options.toString()}`;
    const script = files.write("connect.js", `db = connect(${JSON.stringify(uri)});\n`);
    // The shell runs all of --eval before any file.
    return { args: ["--nodb", "--quiet", "--eval", `void load(${JSON.stringify(script)})`], environment: {} };
  },
  /** A session with a script or a file ends after it. */
  arguments: (args) => (args.some(isScript) ? args : ["--shell", ...args]),
  snippets: mongodbSnippets,
  hasManagedUsersOnly: true,
};
