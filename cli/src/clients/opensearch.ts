import type { EngineClient } from "./engine-client.ts";

/** curl with the address and the user of the engine's HTTP API. Its option `--request-target` is the path of a call. */
export const opensearch: EngineClient = {
  programs: ["curl"],
  session({ host, port, ca_certificate: ca }, { user, password }, files) {
    const quoted = (value: string) => `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
    // A file, since arguments are visible to other users of the machine.
    const settings = [
      `cacert = ${quoted(files.write("ca.pem", ca))}`,
      `user = ${quoted(`${user}:${password}`)}`,
      `url = ${quoted(`https://${host}:${port}/`)}`,
      "silent",
      "show-error",
    ];
    return { args: ["--config", files.write("curl.conf", `${settings.join("\n")}\n`)], environment: {} };
  },
};
