import type { Snippet, SnippetLanguage } from "./engine-client.ts";
import { bracketed, double, shell, socketOf } from "./snippet-parts.ts";

/** Complete programs that connect to the address and verify the name. Each prints the version of the engine. */
// The comment of each line is the command that runs the program.
export const opensearchSnippets: Readonly<Partial<Record<SnippetLanguage, (values: Snippet) => string>>> = {
  python: (values) => `# pip install opensearch-py; python3 connect.py
from pathlib import Path

from opensearchpy import OpenSearch

client = OpenSearch(
    [{"host": ${double(values.address)}, "port": ${values.port}}],
    # The certificate has the name, not the address.
    ssl_assert_hostname=${double(values.host)},
    use_ssl=True,
    ca_certs=${double(values.caFile)},
    http_auth=(${double(values.user)}, Path(${double(values.passwordFile)}).read_text()),
)
print(client.info()["version"]["number"])`,

  node: (values) => `// npm install @opensearch-project/opensearch; node connect.mjs
import { readFileSync } from "node:fs";
import { Client } from "@opensearch-project/opensearch";

const client = new Client({
  node: ${double(`https://${socketOf(values)}`)},
  auth: { username: ${double(values.user)}, password: readFileSync(${double(values.passwordFile)}, "utf8") },
  // The certificate has the name, not the address.
  ssl: { ca: readFileSync(${double(values.caFile)}), servername: ${double(values.host)} },
});
const { body } = await client.info();
console.log(body.version.number);
await client.close();`,

  // The password is in the input, since arguments are visible to other users of the machine.
  curl: ({ host, address, port, user, caFile, passwordFile }) =>
    [
      `printf 'user = "%s:%s"' ${shell(user)} "$(cat ${shell(passwordFile)})" |`,
      `curl --silent --show-error --config - --cacert ${shell(caFile)} --resolve ${shell(`${host}:${port}:${bracketed(address)}`)}`,
      shell(`https://${host}:${port}/`),
    ].join(" "),
};
