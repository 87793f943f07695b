import type { EngineClient } from "./engine-client.ts";
import { opensearchSnippets } from "./opensearch-snippets.ts";

/**
 * curl with the address and the user of the engine's HTTP API. Its option `--request-target` is the path of a call; a
 * first argument that begins with a slash is that path too.
 */
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
  arguments(args) {
    const [first, ...rest] = args;
    const called = first?.startsWith("/") === true ? ["--request-target", first, ...rest] : args;
    const hasBody = args.some((each) => /^(-d|--data)/.test(each));
    // curl names the type of forms by default, which the engine refuses.
    const isTyped = args.some((each) => /content-type/i.test(each));
    return hasBody && !isTyped ? ["--header", "Content-Type: application/json", ...called] : called;
  },
  resolvesName: true,
  hasManagedUsersOnly: true,
  electsLeader: true,
  snippets: opensearchSnippets,
};
