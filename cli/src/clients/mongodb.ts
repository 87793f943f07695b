import type { EngineClient } from "./engine-client.ts";

/** MongoDB's shell. It gets the password in a script, since its arguments are visible to other users of the machine. */
export const mongodb: EngineClient = {
  programs: ["mongosh"],
  session(connection, { user, password, database }, files) {
    const { host, port, ca_certificate: ca } = connection;
    const [name, secret] = [user, password].map(encodeURIComponent);
    const options = new URLSearchParams({ tls: "true", authSource: "admin", tlsCAFile: files.write("ca.pem", ca) });
    const uri = `mongodb://${name}:${secret}@${host}:${port}/${database ?? connection.database}?${options.toString()}`;
    const script = files.write("connect.js", `db = connect(${JSON.stringify(uri)});\n`);
    return { args: ["--nodb", "--quiet", "--shell", script], environment: {} };
  },
  hasManagedUsersOnly: true,
};
