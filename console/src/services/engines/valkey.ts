import type { ConsoleEngine } from "./console-engine.ts";

export const valkey: ConsoleEngine = {
  snippets: ({ host, port, user, uri }) => [
    { title: "URI", text: uri },
    { title: "valkey-cli", text: `valkey-cli -h ${host} -p ${port} --user ${user} --askpass --tls --cacert ca.pem` },
    {
      title: "Python",
      text: [
        "import os, valkey",
        `client = valkey.Valkey(host="${host}", port=${port}, username="${user}", password=os.environ["PASSWORD"],`,
        '    ssl=True, ssl_ca_certs="ca.pem")',
      ].join("\n"),
    },
  ],
};
