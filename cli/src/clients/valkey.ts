import { type EngineClient, primaryAddress } from "./engine-client.ts";

export const valkey: EngineClient = {
  programs: ["valkey-cli", "redis-cli"],
  session(connection, { user, password }, files) {
    const { host, port, ca_certificate: ca } = connection;
    const address = primaryAddress(connection) ?? host;
    const verified = ["--tls", "--sni", host, "--cacert", files.write("ca.pem", ca)];
    const args = ["-h", address, "-p", String(port), ...verified, "--user", user];
    return { args, environment: { REDISCLI_AUTH: password } };
  },
  ignoresHostName: true,
  hasManagedUsersOnly: true,
};
